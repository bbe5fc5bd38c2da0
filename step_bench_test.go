//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/safetensors"
	"codea1/producers/problems"
)

// BenchmarkStep runs a step of two models on the embedded engine with the sandbox:
// 8 problems, 32 answers of at most 48 tokens, 128 suites of at most 64, and two
// optimizer steps of each model, whose weights the samplers then load. The Test LLM
// trains on the suites of one answer per problem, as TOPVAR chooses, or on all 128.
//
// The models have random weights, so they use all their tokens. The sandbox runs
// the solution and wrong programs of the problem in place of their answers, and
// tests of the problem set, which take as long as those of a trained model. The
// benchmark has no bus and no log: see BenchmarkPipeline.
func BenchmarkStep(b *testing.B) {
	for _, size := range []struct {
		name                string
		hidden, layers, mlp int
	}{{"1M", 128, 4, 448}, {"0.3M", 96, 2, 288}} {
		for _, trained := range []string{"topvar", "all"} {
			b.Run(fmt.Sprintf("%s/%s", size.name, trained), func(b *testing.B) {
				s := newStepBench(b, size.hidden, size.layers, size.mlp)
				s.allSuites = trained == "all"
				cpu := processTime(b)
				for b.Loop() {
					s.step(b)
				}
				cpu = processTime(b) - cpu
				b.ReportMetric(float64(b.N)/b.Elapsed().Minutes(), "steps/min")
				b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/step") // without the sandbox
				b.ReportMetric(float64(s.code.learner.Parameters()), "parameters")
				for phase, took := range s.took {
					b.ReportMetric(float64(took.Milliseconds())/float64(b.N), phase+"-ms/step")
				}
			})
		}
	}
}

const (
	stepProblems = 8
	stepAnswers  = 4 // of a problem
	stepSuites   = 4 // of an answer
	stepTests    = 3 // of a suite
)

// stepRole is a model with its sampler and its learner, as in a run.
type stepRole struct {
	sampler, learner *tiny.Engine
	folder           string
	tokens           int // most of a response
}

type stepBench struct {
	code, test stepRole
	pool       *sandbox.Pool
	recipe     rewards.Recipe
	problems   []problems.Problem
	allSuites  bool
	steps      int
	took       map[string]time.Duration
}

func newStepBench(b *testing.B, hidden, layers, mlp int) *stepBench {
	s := &stepBench{took: map[string]time.Duration{}}
	var err error
	if s.problems, _, err = problems.ReadAll(b.Context(), "builtin:train", problems.LoadOptions{}); err != nil {
		b.Fatal(err)
	}
	if s.recipe, err = rewards.New("a1", 0.5); err != nil {
		b.Fatal(err)
	}
	if s.pool, err = sandbox.Open(b.Context(), sandbox.Config{Level: sandbox.LevelOpen}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.pool.Close(); err != nil {
			b.Error(err)
		}
	})
	for i, role := range []*stepRole{&s.code, &s.test} {
		checkpoint := newCheckpoint(b, hidden, layers, mlp, uint64(i))
		for _, engine := range []**tiny.Engine{&role.sampler, &role.learner} {
			if *engine, err = tiny.OpenFS(checkpoint); err != nil {
				b.Fatal(err)
			}
		}
		role.folder = b.TempDir()
	}
	s.code.tokens, s.test.tokens = 48, 64
	return s
}

// newCheckpoint returns the checkpoint of a new model with the shipped tokenizer.
func newCheckpoint(b *testing.B, hidden, layers, mlp int, seed uint64) fs.FS {
	shipped, err := tiny.Checkpoint("test")
	if err != nil {
		b.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range []string{"config.json", "tokenizer.json"} {
		text, err := fs.ReadFile(shipped, name)
		if err != nil {
			b.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	config, err := qwen2.ParseConfig(files["config.json"].Data)
	if err != nil {
		b.Fatal(err)
	}
	config.Hidden, config.Layers, config.MLP, config.HeadSize = hidden, layers, mlp, hidden/config.Heads
	weights := qwen2.NewWeights(config)
	weights.Initialize(seed)
	if files["config.json"].Data, err = config.MarshalFile("float32"); err != nil {
		b.Fatal(err)
	}
	var tensors []safetensors.Values
	for _, t := range weights.Tensors {
		tensors = append(tensors, safetensors.Values{Name: t.Name, Shape: t.Shape, Data: t.Data})
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, tensors, safetensors.F32, nil); err != nil {
		b.Fatal(err)
	}
	files["model.safetensors"] = &fstest.MapFile{Data: file.Bytes()}
	return files
}

// stepGroup is a group in a step.
type stepGroup struct {
	problem *problems.Problem
	posed   events.ProblemPosed
	codes   []string
	answers gpuworker.SampleRequest
	suites  []gpuworker.SampleRequest // by answer

	answered  []events.Completion
	suggested [][]events.Completion // by answer
	rewarded  *events.GroupRewarded
}

func (s *stepBench) step(b *testing.B) {
	groups := make([]*stepGroup, stepProblems)
	for i := range groups {
		groups[i] = s.pose(b, i)
	}
	began := time.Now()
	phase := func(name string) {
		now := time.Now()
		s.took[name] += now.Sub(began)
		began = now
	}
	s.sample(b, groups)
	phase("sample")
	s.execute(b, groups)
	phase("sandbox")
	s.train(b, groups)
	phase("train")
	s.steps++
}

func (s *stepBench) pose(b *testing.B, slot int) *stepGroup {
	g := &stepGroup{problem: &s.problems[(s.steps*stepProblems+slot)%len(s.problems)]}
	g.posed.Problem, _ = g.problem.Posable(false)
	g.posed.Plan = events.Plan{
		Purpose: events.PurposeTrain, Step: s.steps + 1, Slot: slot, Groups: stepProblems,
		Answers: stepAnswers, Suites: stepSuites, Tests: stepTests, Temperature: 1, CodeTokens: s.code.tokens, TestTokens: s.test.tokens,
	}
	encode := func(role events.Role, fields gpuworker.PromptFields, completions int) gpuworker.SampleRequest {
		prompt, err := (&gpuworker.PromptFlags{PromptStyle: gpuworker.StylePlain}).Prompt(role)
		if err != nil {
			b.Fatal(err)
		}
		messages, err := prompt.Write(fields)
		if err != nil {
			b.Fatal(err)
		}
		ids, err := s.code.sampler.EncodePrompt(messages)
		if err != nil {
			b.Fatal(err)
		}
		r := gpuworker.SampleRequest{Prompt: ids}
		for range completions {
			r.Seeds = append(r.Seeds, uint64(s.steps)<<32|uint64(slot)<<16|uint64(len(g.suites))<<8|uint64(len(r.Seeds)))
		}
		return r
	}
	g.answers = encode(events.RoleCode, gpuworker.CodeFields(&g.posed.Problem), stepAnswers)
	for i := range stepAnswers {
		code := g.problem.Solution
		if n := len(g.problem.Buggy); n > 0 && i > 0 {
			code = g.problem.Buggy[i%n].Code
		}
		g.codes = append(g.codes, code)
		g.suites = append(g.suites, encode(events.RoleTest, gpuworker.TestFields(&g.posed.Problem, code, stepTests, nil), stepSuites))
	}
	return g
}

func (s *stepBench) sample(b *testing.B, groups []*stepGroup) {
	var answers, suites []gpuworker.SampleRequest
	for _, g := range groups {
		answers, suites = append(answers, g.answers), append(suites, g.suites...)
	}
	completions := func(r *stepRole, requests []gpuworker.SampleRequest) [][]events.Completion {
		out, err := r.sampler.Sample(b.Context(), requests, gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: r.tokens})
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	answered, suggested := completions(&s.code, answers), completions(&s.test, suites)
	for i, g := range groups {
		g.answered, g.suggested = answered[i], suggested[i*stepAnswers:][:stepAnswers]
		for j, row := range g.suggested {
			for k := range row {
				row[k].Text = g.tests(j*stepSuites + k)
			}
		}
	}
}

// tests returns the text of a suite: tests of the problem, different for each suite.
func (g *stepGroup) tests(suite int) string {
	var text strings.Builder
	text.WriteString("```python\n")
	for i := range stepTests {
		fmt.Fprintln(&text, g.problem.Tests[(suite*stepTests+i)%len(g.problem.Tests)])
	}
	return text.String() + "```"
}

func (s *stepBench) execute(b *testing.B, groups []*stepGroup) {
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for _, g := range groups {
		work.Go(func() error {
			sampled := &events.TestsSampled{Posed: g.posed, Codes: g.codes, Suites: g.suggested}
			for _, r := range g.suites {
				sampled.Prompts = append(sampled.Prompts, r.Prompt)
			}
			executed, err := execution.New(s.pool).Execute(b.Context(), sampled)
			if err != nil {
				return err
			}
			g.rewarded, err = rewards.Score(s.recipe, executed)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		b.Fatal(err)
	}
}

// train makes two optimizer steps of each model.
func (s *stepBench) train(b *testing.B, groups []*stepGroup) {
	for _, half := range [][]*stepGroup{groups[:stepProblems/2], groups[stepProblems/2:]} {
		var answers, suites []gpuworker.Sequence
		for _, g := range half {
			for i, c := range g.answered {
				answers = append(answers, sequence(g.answers.Prompt, c, g.rewarded.Code[i].Advantage))
			}
			for i, row := range g.suggested {
				for j, c := range row {
					if s.allSuites || i == max(0, g.rewarded.TopVar) {
						suites = append(suites, sequence(g.suites[i].Prompt, c, g.rewarded.Test[i][j].Advantage))
					}
				}
			}
		}
		s.code.update(b, answers)
		s.test.update(b, suites)
	}
	for _, r := range []*stepRole{&s.code, &s.test} {
		r.hand(b, s.steps)
	}
}

func sequence(prompt []int32, c events.Completion, advantage float64) gpuworker.Sequence {
	return gpuworker.Sequence{Prompt: prompt, Tokens: c.Tokens, OldProbs: c.LogProbs, Advantage: advantage}
}

func (r *stepRole) update(b *testing.B, sequences []gpuworker.Sequence) {
	before, err := r.learner.LogProbs(b.Context(), gpuworker.Current, sequences, 1) // in place of the reference model's
	if err != nil {
		b.Fatal(err)
	}
	for i := range sequences {
		sequences[i].RefProbs = before[i]
	}
	_, err = r.learner.Update(b.Context(), sequences, gpuworker.UpdateConfig{
		Loss: gpuworker.LossPPO, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 10, LogRatioClamp: 20, KLCoef: 0.001, Temperature: 1,
		LearningRate: 2e-4, WeightDecay: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, GradClip: 1,
	})
	if err != nil {
		b.Fatal(err)
	}
}

// hand saves the learner's weights and loads them into the sampler.
func (r *stepRole) hand(b *testing.B, step int) {
	dir := filepath.Join(r.folder, fmt.Sprint(step))
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := r.learner.Save(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	if err := r.sampler.LoadWeights(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
}
