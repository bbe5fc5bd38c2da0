package tiny

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// Sample implements gpuworker.Sampler.
func (e *Engine) Sample(ctx context.Context, requests []gpuworker.SampleRequest, params gpuworker.SamplingParams) ([][]events.Completion, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	config := e.current.net.Weights.Config
	if err := checkParams(params); err != nil {
		return nil, err
	}
	var all []*sequence
	for i, r := range requests {
		if err := checkTokens("prompt", r.Prompt, config); err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
		if len(r.Prompt)+params.MaxTokens > config.Positions {
			return nil, fmt.Errorf("request %d: %w: a prompt of %d tokens and %d more exceed the model's %d positions",
				i, ErrBadRequest, len(r.Prompt), params.MaxTokens, config.Positions)
		}
		for _, seed := range r.Seeds {
			all = append(all, &sequence{request: i, prompt: r.Prompt, rng: rand.New(rand.NewPCG(seed, seedStream))})
		}
	}
	shards := min(e.threads, len(all))
	err := parallel(ctx, shards, shards, func(ctx context.Context, i int) error {
		mine := all[i*len(all)/shards : (i+1)*len(all)/shards]
		return e.newDecoding(params, min(e.slots, len(mine))).run(ctx, mine)
	})
	if err != nil {
		return nil, err
	}
	out := make([][]events.Completion, len(requests))
	for _, s := range all {
		out[s.request] = append(out[s.request], e.completion(s))
	}
	return out, nil
}

// seedStream keeps sampling apart from other uses of the same seeds.
const seedStream = 0x636f6465613173

func checkParams(p gpuworker.SamplingParams) error {
	switch {
	case !(p.Temperature > 0 && p.Temperature <= 1e6):
		return fmt.Errorf("%w: temperature %g is not above 0", ErrBadRequest, p.Temperature)
	case !(p.TopP > 0 && p.TopP <= 1):
		return fmt.Errorf("%w: top-p %g is outside (0, 1]", ErrBadRequest, p.TopP)
	case p.TopK < 0:
		return fmt.Errorf("%w: top-k %d is negative", ErrBadRequest, p.TopK)
	case p.MaxTokens < 1:
		return fmt.Errorf("%w: at most %d tokens leave nothing to sample", ErrBadRequest, p.MaxTokens)
	}
	return nil
}

// checkTokens refuses an empty list and ids outside the vocabulary.
func checkTokens(what string, ids []int32, config qwen2.Config) error {
	if len(ids) == 0 {
		return fmt.Errorf("%w: empty %s", ErrBadRequest, what)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= config.Vocabulary {
			return fmt.Errorf("%w: token %d of the %s is outside the vocabulary of %d", ErrBadRequest, id, what, config.Vocabulary)
		}
	}
	return nil
}

// completion decodes what was sampled. Text is valid UTF-8 even if the model
// left a rune half said.
func (e *Engine) completion(s *sequence) events.Completion {
	c := events.Completion{Tokens: s.tokens, LogProbs: s.logProbs, Finish: events.FinishLength}
	text := s.tokens
	if s.ended {
		c.Finish = events.FinishStop
		text = text[:len(text)-1]
	}
	c.Text = strings.ToValidUTF8(e.tokenizer.DecodeText(text), "\uFFFD")
	return c
}

// sequence is one completion in the making.
type sequence struct {
	request  int
	prompt   []int32
	rng      *rand.Rand
	tokens   []int32
	logProbs []float32
	ended    bool // by an end token
}

// prefix is a prefilled prompt and how many sequences still read it.
type prefix struct {
	qwen2.Prefix
	readers int
}

// decoding is one goroutine's share of a Sample call: slots that sequences
// enter when one is free and leave when they end.
type decoding struct {
	engine  *Engine
	params  gpuworker.SamplingParams
	decoder *qwen2.Decoder
	chooser *chooser

	inSlot   []*sequence // by slot; nil when free
	prefixOf []*prefix   // by slot
	unused   []*prefix   // for reuse

	latest  *prefix // of the request that entered last
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

// run completes the sequences. Those of a request follow one another.
func (d *decoding) run(ctx context.Context, waiting []*sequence) error {
	pass := d.engine.current.passes.Get().(*qwen2.Pass)
	defer d.engine.current.passes.Put(pass)
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

// enter gives a sequence its prompt's cache, its first token and a slot, unless
// that token is also its last.
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

// prefill makes d.latest the prompt of s, in memory no sequence reads.
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

// gather lists the slots in use, those of a request side by side, because they
// attend to their prompt together.
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

// step extends each sequence of the batch by a token. It does not allocate.
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

// leave frees a slot, and its prompt's cache after the last reader.
func (d *decoding) leave(slot int) {
	p := d.prefixOf[slot]
	if p.readers--; p.readers == 0 && p != d.latest {
		d.unused = append(d.unused, p)
	}
	d.inSlot[slot], d.prefixOf[slot] = nil, nil
}

// extend draws the next token of s and reports whether s goes on.
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
