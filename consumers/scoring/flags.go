package scoring

import (
	"cmp"
	"errors"
	"fmt"
)

// Flags say what eval scores.
type Flags struct {
	First        string   `arg:"" optional:"" name:"checkpoint|url" help:"The checkpoint to sample from: a checkpoint directory, a run (its newest version; --at for another), builtin: the embedded model, or the address of a server with OpenAI's interface (http://HOST:PORT/v1, with --model). With --samples-file or --ground-truths, a benchmark."`
	Benchmarks   []string `arg:"" optional:"" name:"benchmark" help:"A benchmark is a release file of HumanEval+ or MBPP+ (.jsonl, .jsonl.gz; https://github.com/evalplus/humanevalplus_release, https://github.com/evalplus/mbppplus_release), a problem set of ours (.jsonl, .jsonl.gz, .parquet), or builtin:heldout; with --role test also a file of UnLeakedTestBench (https://github.com/huangd1999/UnLeakedTestBench); or, alone, a published JSONL file of CRUXEval (https://huggingface.co/datasets/cruxeval-org/cruxeval; problems ID/input and ID/output for each row), LiveCodeBench (https://huggingface.co/datasets/livecodebench/code_generation_lite) or BigCodeBench (https://huggingface.co/datasets/bigcode/bigcodebench and bigcodebench-hard; complete and instruct)."`
	SamplesFile  string   `help:"Grade these samples and sample none: a JSON line each with task_id and solution or completion, any number per task, as EvalPlus writes them." type:"existingfile" placeholder:"FILE" xor:"from"`
	GroundTruths bool     `help:"Grade the ground truths that the benchmark files have, and fail if one does not pass." xor:"from"`
	Out          string   `help:"With --samples-file or --ground-truths: file to add a JSON line per problem to. Problems that it already has with the same samples are not graded again, so a stopped grading can be continued." placeholder:"FILE"`
	JSON         bool     `name:"json" help:"Print a JSON object per suite of tests instead of a table."`
	Mutants      string   `help:"With --role test: programs that make the mutants of the ground truths: builtin, or cosmic-ray: Cosmic Ray, which the Python of --python needs. With --resume, other mutants judge the same suites." enum:"builtin,cosmic-ray" default:"builtin"`
	SampleFlags
}

// SampleFlags say how eval samples. An evaluation is a run without steps: its problems
// are the held-out set, and the stages of a training sample, execute and score them.
type SampleFlags struct {
	Resume  string `help:"Continue an evaluation that was stopped, or print a finished one again, by the name or the directory of its run." placeholder:"RUN" xor:"from"`
	Name    string `help:"Name of the run of the evaluation; eval- and the time by default." placeholder:"RUN"`
	At      *int   `help:"Version of the run to evaluate: the number of its step; 0 for the version that it started from. Default: its newest one." placeholder:"VERSION"`
	Preset  string `help:"Values of the settings of models and prompts: tiny, or paper for an instruction-tuned model with the torch engine; paper by default for a server. Those of a run that is evaluated take their place." default:"tiny"`
	Role    string `help:"Role to evaluate: code, by the answers to the problems, or test, by suites about the ground truths, which run on these and on their mutants." enum:"code,test" default:"code"`
	Samples int    `help:"Answers per problem; with --role test, suites. 0: 32 answers, 1 suite." default:"0" min:"0" max:"1024"`
	Tests   int    `help:"With --role test and --test-model: tests of a suite, K of pass@K and mut@K." default:"5" min:"1" max:"1000"`

	Rounds int `help:"With --role test: write a suite in so many rounds. A round asks for one test and shows the tests before it; the test ends with the first assert statement of the response. Default: one response with --tests tests." default:"0" min:"0" max:"1000"`

	TestModel string `help:"Test LLM that writes suites about each answer: a checkpoint like the first name. Of a problem's answers, the one that passes the most of all tests is chosen, without the ground truth." placeholder:"CHECKPOINT"`
	Suites    int    `help:"With --test-model: suites per answer." default:"1" min:"1" max:"1024"`

	Greedy bool `help:"Take the most likely token each time, and one answer or suite per problem."`
}

// serverFlags are the flags of a model server.
var serverFlags = []string{"model", "server-prompt", "stop", "server-key-file", "server-ca-file", "server-requests", "server-timeout", "server-log-probs"}

// Check returns an error about flags that exclude each other. given returns the first of
// the flags that the command line has, with its hyphens. onServer says that First is the
// address of a model server.
func (f *Flags) Check(given func(flags ...string) string, onServer bool) error {
	sampling := []string{"name", "at", "preset", "role", "samples", "tests", "rounds", "test-model", "suites", "greedy", "temperature", "top-p", "code-tokens", "test-tokens", "seed"}
	switch wrong := given(sampling...); {
	case f.At != nil && *f.At < 0:
		return fmt.Errorf("--at %d: want 0 or more", *f.At)
	case f.Resume != "" && (wrong != "" || f.First != ""):
		return fmt.Errorf("--resume takes everything else from the run: leave out %s", cmp.Or(wrong, "the names"))
	case (f.SamplesFile != "" || f.GroundTruths) && wrong != "":
		return fmt.Errorf("--samples-file and --ground-truths sample nothing: leave out %s", wrong)
	case f.SamplesFile == "" && !f.GroundTruths && f.Out != "":
		return errors.New("--out is for --samples-file and --ground-truths: an evaluation writes its results into its run directory")
	case f.SamplesFile == "" && !f.GroundTruths && f.Resume == "" && len(f.Benchmarks) == 0:
		return errors.New("name a checkpoint and a benchmark; or one of --samples-file, --ground-truths and --resume")
	case f.TestModel == "" && (given("suites") != "" || f.Role == "code" && given("tests") != ""):
		return fmt.Errorf("%s needs --test-model", given("suites", "tests"))
	case f.TestModel != "" && f.Role != "code":
		return errors.New("--test-model is for --role code: name the Test LLM first with --role test")
	case given("mutants") != "" && f.Role != "test" && f.Resume == "":
		return errors.New("--mutants is for --role test")
	case f.Rounds > 0 && (f.Role != "test" || given("tests") != ""):
		return errors.New("--rounds is for --role test, and each round has one test: leave out --tests")
	case f.Resume == "" && given("sampler", "server") != "":
		return fmt.Errorf("%s: name the address of the server in place of the checkpoint", given("sampler", "server"))
	case f.Resume == "" && !onServer && given(serverFlags...) != "":
		return fmt.Errorf("%s is for the address of a server in place of the checkpoint", given(serverFlags...))
	case onServer && given("at", "test-model", "engine") != "":
		return fmt.Errorf("%s is for a checkpoint, and %s is a server", given("at", "test-model", "engine"), f.First)
	case f.Greedy && given("samples", "top-p") != "":
		return fmt.Errorf("--greedy takes one sample per problem: leave out %s", given("samples", "top-p"))
	}
	return nil
}
