//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/natsbus"
	"codea1/events/outbox"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/models"
	"codea1/producers/curriculum"
	"codea1/replay/eventlog"
)

// benchSizes are the sizes of the paper's steps and groups.
var benchSizes = curriculum.Flags{
	Epochs: 1, ProblemsPerStep: 256, MaxStaleness: 1, Historical: 8, Answers: 8, Suites: 8, Tests: 8,
	Temperature: 1, CodeTokens: benchTokens, TestTokens: benchTokens,
}

const benchTokens = 300 // of a completion

// BenchmarkPipeline runs a training of groups of real size without models and
// sandbox. One operation is a step of 256 groups. It reports:
//
//	groups/s     groups through all stages per second of wall time
//	cpu-ms/group CPU time of the process with the NATS server
//	KB/group     bytes of all events of a group on the wire
//	%ofstep      share of a training step (paperStep) that two cores spend on it
func BenchmarkPipeline(b *testing.B) {
	sizes := benchSizes
	sizes.Steps = b.N
	// Like train.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	defer events.Remember(recentBytes)()
	p := newPipeline(b, sizes)
	cpu := processTime(b)
	b.ResetTimer()
	p.train(b)
	b.StopTimer()
	cpu = processTime(b) - cpu
	groups := float64(b.N * sizes.ProblemsPerStep)
	if n := p.rewarded.Load(); n != int64(groups) {
		b.Fatalf("%d groups were rewarded, want %v", n, groups)
	}
	b.ReportMetric(groups/b.Elapsed().Seconds(), "groups/s")
	b.ReportMetric(cpu.Seconds()*1e3/groups, "cpu-ms/group")
	b.ReportMetric(float64(p.bytes.Load())/1e3/groups, "KB/group")
	b.ReportMetric(100*cpu.Seconds()/2/float64(b.N)/paperStep.Seconds(), "%ofstep")
}

// train runs all stages until the last step is trained.
func (p *pipeline) train(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	g, stop := services.NewGroup(ctx)
	p.startWorkers(b, g, executeNothing)
	p.startTrainers(b, g)
	p.begin(ctx, b)
	select {
	case <-p.finished:
	case <-g.Done():
	}
	if err := stop(); err != nil {
		b.Fatal(err)
	}
}

// paperStep is a lower bound for a training step at the paper's settings. The paper
// gives no time. NVIDIA's NeMo RL v0.4 performance summary has 97.7 s for an
// on-policy GRPO step of Llama 3.1 8B on 16 H100, with 2,048 rollouts of 1,060
// tokens. The paper's largest model is 7B, but its step has two models, 18,432
// rollouts and the sandbox.
const paperStep = 97700 * time.Millisecond

// processTime returns the CPU time that this process has used.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pipeline is a run in one process, without models and sandbox.
type pipeline struct {
	dir      string
	bus      *natsbus.Bus
	log      *eventlog.Log
	poser    *curriculum.Service
	steps    int
	groups   int // of a step
	staging  *prometheus.Registry
	lagEvery time.Duration // of the stages; 0 for the default
	finished chan struct{}
	posed    atomic.Int64 // groups in the log
	rewarded atomic.Int64
	bytes    atomic.Int64 // payload in the log
}

const pipelineRun = "bench"

func newPipeline(t testing.TB, sizes curriculum.Flags) *pipeline {
	server, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir(), SyncInterval: connect.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	bus, err := natsbus.Connect(t.Context(), natsbus.Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bus.Close() })
	return newPipelineOn(t, bus, sizes)
}

func newPipelineOn(t testing.TB, bus *natsbus.Bus, sizes curriculum.Flags) *pipeline {
	p := &pipeline{dir: t.TempDir(), bus: bus, steps: sizes.Steps, groups: sizes.ProblemsPerStep, staging: prometheus.NewRegistry(), finished: make(chan struct{})}
	var err error
	if err := p.bus.EnsureStream(t.Context(), pipelineRun); err != nil {
		t.Fatal(err)
	}
	if p.log, err = eventlog.Open(filepath.Join(p.dir, "log"), eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.log.Close() })
	set := make([]events.Problem, sizes.ProblemsPerStep)
	for i := range set {
		set[i] = benchProblem(i)
	}
	schedule, err := curriculum.New(curriculum.Config{Flags: sizes}, set, p.log.Book(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.poser = &curriculum.Service{Curriculum: schedule, Bus: p.bus, Run: pipelineRun, Source: "curriculum-0", Now: time.Now}
	return p
}

// begin publishes run.started: the first event in the log poses the first steps.
func (p *pipeline) begin(ctx context.Context, t testing.TB) {
	nowhere := events.Checkpoint{URI: "file:///nowhere", SHA256: strings.Repeat("0", 64)}
	m, err := events.Encode(events.New(pipelineRun, "start-0001", "main", time.Now(), &events.RunStarted{
		Attempt: 1, Steps: p.steps, Build: "bench", Code: nowhere, Test: nowhere,
	}))
	if err == nil {
		err = p.bus.Publish(ctx, m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startWorkers runs all stages except the trainers.
func (p *pipeline) startWorkers(t testing.TB, g *services.Group, execute func(context.Context, *events.Event) ([]*events.Event, error)) {
	recorder, err := eventlog.NewRecorder(p.bus, p.log, eventlog.RecorderConfig{Run: pipelineRun, OnAppend: p.appended})
	if err != nil {
		t.Fatal(err)
	}
	g.Go(recorder.Run)
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		p.startRollout(t, g, role)
	}
	recipe, err := rewards.New("a1", 0.5)
	if err != nil {
		t.Fatal(err)
	}
	rewarder := &rewards.Handler{Recipe: recipe, Source: "rewards-0", Now: time.Now}
	p.startStage(t, g, stage.Config{
		Name: "execution", Types: []events.Type{events.TypeTestsSampled}, TextsOnly: true, Concurrency: pipelineExecutions,
		Handler: outbox.Handler(p.openOutbox(t, "execution"), events.TypeCodeExecuted, stage.Each(execute)),
	})
	p.startStage(t, g, stage.Config{
		Name: "rewards", Types: []events.Type{events.TypeCodeExecuted}, Handler: stage.Each(rewarder.Handle), Batch: rewardsBatch,
	})
}

func (p *pipeline) startStage(t testing.TB, g *services.Group, config stage.Config) {
	config.Bus, config.Run, config.AckWait, config.HeartbeatEvery = p.bus, pipelineRun, pipelineAckWait, process.HeartbeatEvery
	config.Registerer, config.LagEvery = p.staging, p.lagEvery
	s, err := stage.New(config)
	if err != nil {
		t.Fatal(err)
	}
	g.Go(s.Run)
}

const (
	pipelineAckWait = 5 * time.Second
	// pipelineExecutions is the number of train on two cores: a group in each
	// sandbox, and one that waits for disk and bus.
	pipelineExecutions = 3
)

func (p *pipeline) startRollout(t testing.TB, g *services.Group, role events.Role) {
	policy, err := gpuworker.NewFollower(gpuworker.FollowerConfig{Bus: p.bus, Run: pipelineRun, Role: role, Sampler: nullEngine{}, Checkpoints: rundir.Checkpoints(p.dir, role)})
	if err != nil {
		t.Fatal(err)
	}
	rollout, err := gpuworker.NewRollout(gpuworker.RolloutConfig{
		Role: role, Policy: policy, Source: "rollout-" + string(role),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Go(policy.Run)
	p.startStage(t, g, stage.Config{
		Name: "rollout-" + string(role), Types: []events.Type{rollout.Consumes()}, TextsOnly: true, Handler: outbox.Handler(p.openOutbox(t, string(role)), rollout.Makes(), rollout.Handle),
		Concurrency: models.RolloutsAtOnce, Batch: models.RolloutBatch, Linger: 5 * time.Millisecond,
	})
}

func (p *pipeline) openOutbox(t testing.TB, name string) *outbox.Outbox {
	box, err := outbox.Open(filepath.Join(p.dir, "outbox-"+name), outbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

func (p *pipeline) startTrainers(t testing.TB, g *services.Group) {
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		hyper := gpuworker.Hyperparameters{
			Schedule: gpuworker.Schedule{Base: 1e-6, Warmup: 10, Total: 2 * p.steps}, GroupsPerStep: p.groups, GroupsPerBatch: 128, MaxStaleness: 1,
			Update: gpuworker.UpdateConfig{LogRatioClamp: 20, Epsilon: 1e-8},
		}
		trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
			Bus: p.bus, Learner: nullEngine{}, Run: pipelineRun, Role: role, Source: "trainer-" + string(role),
			Checkpoints: rundir.Checkpoints(p.dir, role), Initial: p.dir, Steps: p.steps, Hyper: hyper, KeepLast: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		g.Go(trainer.Run)
	}
}

func (p *pipeline) appended(ctx context.Context, appended []events.Message) error {
	for i := range appended {
		p.bytes.Add(int64(len(appended[i].Data)))
		switch appended[i].Type {
		case events.TypeProblemPosed:
			p.posed.Add(1)
		case events.TypeGroupRewarded:
			p.rewarded.Add(1)
		case events.TypeGroupDropped:
			return fmt.Errorf("group %s was dropped", appended[i].Group)
		}
	}
	was := p.poser.Curriculum.Finished()
	if err := p.poser.OnAppend(ctx, appended); err != nil {
		return err
	}
	if p.poser.Curriculum.Finished() && !was {
		close(p.finished)
	}
	return nil
}

// nullEngine samples prepared completions and does not learn.
type nullEngine struct{}

var (
	_ gpuworker.Sampler = nullEngine{}
	_ gpuworker.Learner = nullEngine{}

	// The processes of the end-to-end tests run this binary too, and must not wait for
	// the data that only benchmarks use.
	benchCompletions = sync.OnceValue(func() []events.Completion { return makeCompletions(2048) })
)

func (nullEngine) EncodePrompt([]gpuworker.Message) ([]int32, error) {
	return benchCompletions()[0].Tokens[:benchTokens:benchTokens], nil
}

func (nullEngine) Sample(_ context.Context, requests []gpuworker.SampleRequest, _ gpuworker.SamplingParams) ([][]events.Completion, error) {
	sampled, prepared := make([][]events.Completion, len(requests)), benchCompletions()
	for i, r := range requests {
		for _, seed := range r.Seeds {
			sampled[i] = append(sampled[i], prepared[seed%uint64(len(prepared))])
		}
	}
	return sampled, nil
}

func (nullEngine) LoadWeights(context.Context, string) error { return nil }

func (nullEngine) LogProbs(_ context.Context, _ gpuworker.Policy, sequences []gpuworker.Sequence, _ float64) ([][]float32, error) {
	return make([][]float32, len(sequences)), nil
}

func (nullEngine) Update(_ context.Context, sequences []gpuworker.Sequence, _ gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	return gpuworker.UpdateStats{RatioMean: 1, GradNorm: 1}, nil
}

func (nullEngine) Save(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("null"), 0o644)
}

func (nullEngine) Load(context.Context, string) error          { return nil }
func (nullEngine) LoadReference(context.Context, string) error { return nil }
func (nullEngine) Close() error                                { return nil }

// makeCompletions returns completions that compress like real ones: token ids
// follow Zipf's law over a vocabulary of 152,000, log-probs are mostly near 0 with
// all digits, and the text is a fenced block of assertions.
func makeCompletions(n int) []events.Completion {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 151_999)
	all := make([]events.Completion, n)
	for i := range all {
		c := &all[i]
		c.Finish = events.FinishStop
		for range benchTokens {
			c.Tokens = append(c.Tokens, int32(zipf.Uint64()))
			c.LogProbs = append(c.LogProbs, -float32(math.Pow(r.ExpFloat64(), 3)/4))
		}
		var text strings.Builder
		text.WriteString("The candidate may fail on negative numbers and on long lists; these calls look at both.\n\n```python\n")
		for range benchSizes.Tests {
			text.WriteString(benchTest(r.IntN(1e6)).Source + "\n")
		}
		text.WriteString("```\n")
		c.Text = text.String()
	}
	return all
}

// benchExecuted are prepared results of tests.
var benchExecuted = sync.OnceValue(func() []events.ExecutedTest {
	tests := make([]events.ExecutedTest, 4096)
	for i := range tests {
		tests[i] = benchTest(i * 31)
	}
	return tests
})

// benchTest returns the n-th test, kept and passed.
func benchTest(n int) events.ExecutedTest {
	call := fmt.Sprintf("merge_intervals([[%d, %d], [%d, %d]], %d)", n%997, n%991+1000, n%983+500, n%977+2000, n%7)
	value := fmt.Sprintf("[[%d, %d]]", n%997, n%977+2000)
	return events.ExecutedTest{
		Source: "assert " + call + " == " + value, Status: events.StatusKept, Call: call, Stated: value, Expected: value, Verdict: events.VerdictPass,
	}
}

func benchProblem(i int) events.Problem {
	return events.Problem{
		ID: fmt.Sprintf("intervals-%d", i), EntryPoint: "merge_intervals",
		Question: fmt.Sprintf("Problem %d. ", i) + strings.Repeat("Merge the intervals that overlap or lie closer together than the gap, and return them in order. ", 8),
		Solution: "def merge_intervals(intervals, gap):\n" + strings.Repeat("    intervals = sorted(intervals)\n", 12) + "    return intervals\n",
	}
}

// executeNothing is an execution stage without a sandbox: it keeps every test, and
// every fourth test fails.
func executeNothing(_ context.Context, e *events.Event) ([]*events.Event, error) {
	sampled := e.Payload.(*events.TestsSampled)
	posed := &sampled.Posed
	executed := &events.CodeExecuted{
		Plan: posed.Plan, ProblemID: posed.Problem.ID, CodeVersion: sampled.CodeVersion, TestVersion: sampled.Version, Historical: posed.Historical,
	}
	prepared := benchExecuted()
	for m, suites := range sampled.Suites {
		answer := events.ExecutedAnswer{Loads: true}
		for range posed.Historical {
			answer.Historical = append(answer.Historical, events.VerdictPass)
		}
		for n := range suites {
			suite := events.ExecutedSuite{Chars: len(suites[n].Text)}
			for k := range posed.Plan.Tests {
				test := prepared[(posed.Plan.Slot<<9|m<<6|n<<3|k)%len(prepared)]
				if (m+n+k)%4 == 0 {
					test.Verdict = events.VerdictFail
				}
				suite.Tests = append(suite.Tests, test)
			}
			answer.Suites = append(answer.Suites, suite)
		}
		executed.Answers = append(executed.Answers, answer)
	}
	return []*events.Event{events.Caused(e, "execution-0", time.Now(), executed)}, nil
}
