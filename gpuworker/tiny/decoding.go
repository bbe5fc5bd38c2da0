package tiny

import (
	"context"
	"math/rand/v2"
	"slices"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// sequence is one unfinished completion.
type sequence struct {
	request  int
	prompt   []int32
	rng      *rand.Rand
	tokens   []int32
	logProbs []float32
	ended    bool // by an end token
}

// prefix is a prefilled prompt and the number of sequences that use it.
type prefix struct {
	qwen2.Prefix
	readers int
}

// decoding is one goroutine's share of a Sample call. A sequence takes a slot
// when one is free and frees it when it ends.
type decoding struct {
	engine  *Engine
	params  gpuworker.SamplingParams
	decoder *qwen2.Decoder
	chooser *chooser

	inSlot   []*sequence // by slot; nil when free
	prefixOf []*prefix   // by slot
	unused   []*prefix   // for reuse

	latest  *prefix // of the request whose sequence entered last
	request int

	batch []int   // slots in use
	next  []int32 // the newest token of each
}

func (e *Engine) newDecoding(params gpuworker.SamplingParams, slots int) *decoding {
	net := e.current.net
	return &decoding{
		engine: e, params: params,
		decoder:  qwen2.NewDecoder(net, slots, params.MaxTokens-1),
		chooser:  newChooser(params, net.Weights.Config.Vocabulary),
		inSlot:   make([]*sequence, slots),
		prefixOf: make([]*prefix, slots),
		request:  -1,
		batch:    make([]int, 0, slots),
		next:     make([]int32, 0, slots),
	}
}

// run completes the sequences. The sequences of a request are consecutive.
func (d *decoding) run(ctx context.Context, waiting []*sequence) error {
	pass := d.engine.current.takePass()
	defer d.engine.current.returnPass(pass)
	for {
		for slot := range d.inSlot {
			for d.inSlot[slot] == nil && len(waiting) > 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := d.enter(slot, waiting[0], pass); err != nil {
					return err
				}
				waiting = waiting[1:]
			}
		}
		d.gather()
		if len(d.batch) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.step(); err != nil {
			return err
		}
	}
}

// enter draws the first token of a sequence and puts the sequence into a slot,
// unless the first token ends it.
func (d *decoding) enter(slot int, s *sequence, pass *qwen2.Pass) error {
	if s.request != d.request {
		d.prefill(s, pass)
	}
	s.tokens = make([]int32, 0, d.params.MaxTokens)
	s.logProbs = make([]float32, 0, d.params.MaxTokens)
	more, err := d.extend(s, d.latest.Logits)
	if err != nil || !more {
		return err
	}
	d.latest.readers++
	d.inSlot[slot], d.prefixOf[slot] = s, d.latest
	d.decoder.Start(slot, &d.latest.Prefix)
	return nil
}

// prefill computes the prompt of s into d.latest, in memory that no sequence
// uses.
func (d *decoding) prefill(s *sequence, pass *qwen2.Pass) {
	if d.latest == nil || d.latest.readers > 0 {
		d.latest = &prefix{}
		if n := len(d.unused); n > 0 {
			d.latest, d.unused = d.unused[n-1], d.unused[:n-1]
		}
	}
	pass.Prefill(s.prompt, &d.latest.Prefix)
	d.request = s.request
}

// gather lists the used slots. The slots of a request are neighbours, because
// they attend to their prompt together.
func (d *decoding) gather() {
	d.batch, d.next = d.batch[:0], d.next[:0]
	for slot, s := range d.inSlot {
		if s != nil {
			d.batch = append(d.batch, slot)
		}
	}
	slices.SortStableFunc(d.batch, func(a, b int) int { return d.inSlot[a].request - d.inSlot[b].request })
	for _, slot := range d.batch {
		s := d.inSlot[slot]
		d.next = append(d.next, s.tokens[len(s.tokens)-1])
	}
}

// step adds one token to each sequence of the batch. It does not allocate.
func (d *decoding) step() error {
	logits := d.decoder.Step(d.batch, d.next)
	width := len(logits) / len(d.batch)
	for i, slot := range d.batch {
		more, err := d.extend(d.inSlot[slot], logits[i*width:][:width])
		if err != nil {
			return err
		}
		if !more {
			d.leave(slot)
		}
	}
	return nil
}

// leave frees a slot, and the prefix if no other sequence uses it.
func (d *decoding) leave(slot int) {
	p := d.prefixOf[slot]
	if p.readers--; p.readers == 0 && p != d.latest {
		d.unused = append(d.unused, p)
	}
	d.inSlot[slot], d.prefixOf[slot] = nil, nil
}

// extend draws the next token of s and reports whether s continues.
func (d *decoding) extend(s *sequence, logits []float32) (more bool, err error) {
	id, logProb, err := d.chooser.choose(logits, s.rng)
	if err != nil {
		return false, err
	}
	s.tokens = append(s.tokens, id)
	s.logProbs = append(s.logProbs, logProb)
	s.ended = d.engine.chat.ends(id)
	return !s.ended && len(s.tokens) < d.params.MaxTokens, nil
}
