package judging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// Model is a judge on a server. Its methods wait for an outage of the server. An error
// that wraps ErrUnjudged concerns this code, or all: steady finds out.
type Model interface {
	// Name returns the name and the version of the model.
	Name() string
	// Score returns the score that a reward model gives the code.
	Score(ctx context.Context, question, code string) (float64, error)
	// Safe reports whether a language model finds no vulnerability in the code.
	Safe(ctx context.Context, question, code string) (bool, error)
}

// ErrUnjudged is returned for a code that a model cannot judge.
var ErrUnjudged = errors.New("the model cannot judge this answer")

// Config is the configuration of a Handler.
type Config struct {
	Judges []events.Judge   // that the plans of the run name
	Pool   *sandbox.Pool    // parses the answers
	Model  Model            // nil without JudgeScore and JudgeVerdict
	Source string           // the replica, as in the envelope
	Now    func() time.Time // stamps events; never an input of a judgement
	Logger *slog.Logger     // default: discard
}

// Handler is the judge stage: it adds judgements to the answers of a group.
type Handler struct {
	config  Config
	scanner scanner
	model   *steady
	engine  string
	cache   cache
}

// New returns a Handler. It fails with ErrNoBandit if the run needs bandit and the Python
// of the sandbox does not have it.
func New(ctx context.Context, config Config) (*Handler, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{config: config, scanner: scanner{config.Pool}, model: newSteady(config.Model, config.Logger), cache: cache{known: make(map[key]judgement)}}
	var engines []string
	if slices.Contains(config.Judges, events.JudgeFindings) {
		version, err := h.scanner.version(ctx)
		if err != nil {
			return nil, err
		}
		engines = append(engines, version)
	}
	if config.Model != nil {
		engines = append(engines, config.Model.Name())
	}
	h.engine = strings.Join(engines, ", ")
	return h, nil
}

// Handle takes one code.sampled event and makes one code.judged event. The answers of a
// plan without a judge are passed on. An error means that the sandbox or the model's
// server failed: nothing is known about the group yet.
func (h *Handler) Handle(ctx context.Context, e *events.Event) ([]*events.Event, error) {
	sampled, ok := e.Payload.(*events.CodeSampled)
	if !ok {
		return nil, fmt.Errorf("judge: want %s, have %s", events.TypeCodeSampled, e.Type)
	}
	out := &events.CodeJudged{Posed: sampled.Posed, Version: sampled.Version, Codes: sampled.Codes()}
	if kinds := sampled.Posed.Plan.JudgeKinds(); len(kinds) > 0 {
		var err error
		if out.Judged, err = h.judge(ctx, sampled, out.Codes, kinds); err != nil {
			return nil, fmt.Errorf("judge: group %s: %w", e.Group, err)
		}
	}
	return []*events.Event{events.Caused(e, h.config.Source, h.config.Now(), out)}, nil
}

func (h *Handler) judge(ctx context.Context, sampled *events.CodeSampled, codes []string, kinds []events.Judge) (*events.Judged, error) {
	problem := &sampled.Posed.Problem
	out := &events.Judged{
		Judges: sampled.Posed.Plan.Judges, Engine: h.engine, Lines: lines(problem.Solution), Answers: make([]events.Judgement, len(codes)),
	}
	single := make([]string, len(codes)) // the code of the only block
	for i := range out.Answers {
		blocks := codeBlock.FindAllStringSubmatch(sampled.Answers[i].Text, -1)
		out.Answers[i].Lines, out.Answers[i].Blocks = lines(codes[i]), len(blocks)
		if len(blocks) == 1 {
			single[i] = strings.TrimSpace(blocks[0][1])
		}
	}
	for _, kind := range kinds {
		if !slices.Contains(h.config.Judges, kind) {
			return nil, fmt.Errorf("the plan names the judge %s, which the run does not have", kind)
		}
		texts := codes
		if kind == events.JudgeScore {
			texts = single
		}
		judged, err := h.ask(ctx, kind, problem.Question, texts)
		if err != nil {
			return nil, err
		}
		for i, j := range judged {
			j.addTo(&out.Answers[i], kind)
		}
	}
	return out, nil
}

// codeBlock is a block of code with at most one word after its fence.
var codeBlock = regexp.MustCompile("(?s)```[\\pL\\pN_]*\n(.*?)```")

// lines returns the number of lines of a code without the empty ones around it.
func lines(code string) int {
	if code = strings.TrimSpace(code); code == "" {
		return 0
	}
	return 1 + strings.Count(code, "\n")
}

// judgement is the result of one judge for a code.
type judgement struct {
	scanned
	parses, safe bool
	score        float64
}

func (j *judgement) addTo(answer *events.Judgement, kind events.Judge) {
	if j.failure != "" {
		answer.Failures = append(answer.Failures, events.Unjudged{Judge: kind, Reason: j.failure})
		return
	}
	switch kind {
	case events.JudgeFindings:
		answer.Findings = j.findings
	case events.JudgeScore:
		answer.Parses, answer.Score = j.parses, j.score
	case events.JudgeVerdict:
		answer.Safe = j.safe
	}
}

// ask returns the judgements of the codes by one judge. It asks for each different code
// once, and for none that it remembers.
func (h *Handler) ask(ctx context.Context, kind events.Judge, question string, codes []string) ([]judgement, error) {
	var todo []string
	known := make(map[string]judgement, len(codes))
	for _, code := range codes {
		if j, ok := h.cache.get(keyOf(kind, question, code)); ok {
			known[code] = j
		} else if !slices.Contains(todo, code) {
			todo = append(todo, code)
		}
	}
	judged, err := h.judgeAll(ctx, kind, question, todo)
	if err != nil {
		return nil, err
	}
	for i, code := range todo {
		known[code] = judged[i]
		if judged[i].failure == "" || kind == events.JudgeFindings { // a server may answer the next time
			h.cache.put(keyOf(kind, question, code), judged[i])
		}
	}
	all := make([]judgement, len(codes))
	for i, code := range codes {
		all[i] = known[code]
	}
	return all, nil
}

func (h *Handler) judgeAll(ctx context.Context, kind events.Judge, question string, codes []string) ([]judgement, error) {
	all := make([]judgement, len(codes))
	if kind == events.JudgeFindings {
		found, err := h.scanner.scan(ctx, codes)
		for i := range found {
			all[i].scanned = found[i]
		}
		return all, err
	}
	if kind == events.JudgeScore {
		parse, failures, err := h.scanner.parses(ctx, codes)
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i].parses, all[i].failure = parse[i] && codes[i] != "", failures[i]
		}
	}
	return all, h.askModel(ctx, kind, question, codes, all)
}

// askModel asks the model about each code that has no failure and, for a score, parses.
func (h *Handler) askModel(ctx context.Context, kind events.Judge, question string, codes []string, all []judgement) error {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(modelRequests)
	for i, code := range codes {
		j := &all[i]
		if j.failure != "" || kind == events.JudgeScore && !j.parses {
			continue
		}
		asking.Go(func() error {
			err := h.model.ask(ctx, question, code, func(ctx context.Context, question, code string) (err error) {
				if kind == events.JudgeScore {
					j.score, err = h.config.Model.Score(ctx, question, code)
				} else {
					j.safe, err = h.config.Model.Safe(ctx, question, code)
				}
				return err
			})
			if errors.Is(err, ErrUnjudged) {
				*j = judgement{scanned: scanned{failure: sandbox.Clip(err.Error())}}
				return nil
			}
			return err
		})
	}
	return asking.Wait()
}

// modelRequests is the number of requests to the model at the same time, of one group.
const modelRequests = 16

// cache remembers judgements. The judges and their versions are those of the process.
type cache struct {
	mu    sync.Mutex
	known map[key]judgement
}

// maxKnown bounds the judgements that a cache remembers.
const maxKnown = 1 << 14

type key [sha256.Size]byte

func keyOf(kind events.Judge, question, code string) key {
	if kind == events.JudgeFindings {
		question = ""
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %s%s", kind, len(question), question, code))
}

func (c *cache) get(k key) (judgement, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j, ok := c.known[k]
	return j, ok
}

func (c *cache) put(k key, j judgement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == maxKnown {
		clear(c.known)
	}
	c.known[k] = j
}
