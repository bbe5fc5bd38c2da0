package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/natsbus/natstest"
	"codea1/events/rundir"
	"codea1/events/settings"
)

// busToken is the secret of compose.yaml's server. The checks of .ci/run validate
// the file by the schema of Compose.
const busToken = "t0123456789abcdef"

// composeFile is the part of compose.yaml that the tests need.
type composeFile struct {
	Services map[string]*composeService
	Configs  map[string]struct{ Content string }
	Secrets  map[string]struct{ File string }
	Volumes  map[string]any
}

type composeService struct {
	Image       string
	Build       any
	Entrypoint  []string
	SecurityOpt []string `yaml:"security_opt"`
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Secrets     []string
	Profiles    []string
	Configs     []struct{ Source, Target string }
	Healthcheck struct{ Test []string }
	Deploy      struct {
		Resources struct {
			Reservations struct {
				Devices []struct{ Capabilities []string }
			}
		}
	}
}

// starts reports whether Compose starts the service for profiles.
func (s *composeService) starts(profiles ...string) bool {
	asked := func(profile string) bool { return slices.Contains(profiles, profile) }
	return strings.HasPrefix(s.Image, "codea1") && (len(s.Profiles) == 0 || slices.ContainsFunc(s.Profiles, asked))
}

// readCompose reads compose.yaml as Compose does without settings in the
// environment.
func readCompose(t *testing.T) *composeFile {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	expanded := os.Expand(string(text), func(name string) string {
		if name == "$" {
			return "$"
		}
		_, byDefault, ok := strings.Cut(name, ":-")
		if !ok {
			t.Errorf("${%s} has no default", name)
		}
		return byDefault
	})
	file := &composeFile{}
	if err := yaml.Unmarshal([]byte(expanded), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// composed returns the arguments of the server of compose.yaml, with its files
// moved below dir.
func composed(t *testing.T, dir string) []string {
	t.Helper()
	file := readCompose(t)
	nats := file.Services["nats"]
	if want := []string{"127.0.0.1:4222:4222"}; !slices.Equal(nats.Ports, want) {
		t.Errorf("ports %v, want %v: the network is not encrypted", nats.Ports, want)
	}
	if script := nats.Entrypoint[2]; !strings.HasPrefix(script, "BUS_TOKEN=$(cat /run/secrets/"+nats.Secrets[0]+") exec nats-server ") {
		t.Errorf("the server gets no token: %s", script)
	}
	args := slices.Clone(nats.Command)
	move := func(from, to string) {
		t.Helper()
		at := slices.Index(args, from)
		if at < 0 {
			t.Fatalf("the command %v does not use %s", args, from)
		}
		args[at] = to
	}
	for _, c := range nats.Configs {
		path := filepath.Join(dir, filepath.Base(c.Target))
		if err := os.WriteFile(path, []byte(file.Configs[c.Source].Content), 0o644); err != nil {
			t.Fatal(err)
		}
		move(c.Target, path)
	}
	for _, v := range nats.Volumes {
		name, target, _ := strings.Cut(v, ":")
		if _, ok := file.Volumes[name]; !ok {
			t.Errorf("no volume %s", name)
		}
		move(target, filepath.Join(dir, name))
	}
	return args
}

// The services of compose.yaml complete a training when they run as plain
// processes.
func TestComposedStages(t *testing.T) {
	t.Parallel()
	composedTraining(t, []string{"cpu"})
}

// So do those of a run with a judge and a shadow.
func TestComposedJudgeAndShadow(t *testing.T) {
	t.Parallel()
	onlyThorough(t, "TestComposedStages has the other services, TestTrainingWithAJudge and TestStages the stages")
	run := composedTraining(t, []string{"cpu", "judge", "shadow"},
		"CODEA1_REWARD=codescaler", "CODEA1_JUDGE_MODEL=m", "CODEA1_JUDGE_SERVER="+rewardModel(t), "CODEA1_SHADOW=golden")
	// The shadow may be so late that the run has ended.
	if must(t, filepath.Dir(filepath.Dir(run)), "replay", "export", filepath.Base(run), "--type", string(events.TypeCodeJudged)) == "" {
		t.Error("the log has no judgement")
	}
}

// Each stage has a service. The default stack is without those that only some runs have, and
// each of these has a profile with its name.
func TestEachStageHasAService(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	for _, stage := range events.Stages {
		if stage.Within != "" {
			continue
		}
		service := file.Services[stage.Name]
		if service == nil || !slices.Equal(service.Command[:2], []string{"stage", stage.Name}) {
			t.Errorf("%s: %+v", stage.Name, service)
			continue
		}
		_, always := events.ModelsBoth.Stage(stage.Name)
		if always = always && !stage.Optional; service.starts("cpu") != always || !service.starts("cpu", stage.Name) {
			t.Errorf("%s has the profiles %v", stage.Name, service.Profiles)
		}
		sandboxed := stage.Name == events.StageExecution || stage.Name == events.StageJudge
		if sandboxed != slices.Contains(service.SecurityOpt, "seccomp:unconfined") {
			t.Errorf("%s: %v", stage.Name, service.SecurityOpt)
		}
		var environ []string
		for key, value := range service.Environment {
			environ = append(environ, key+"="+value)
		}
		var cli CLI
		parser, err := newParser(&cli)
		if err == nil {
			err = commandline.CheckEnvironment(parser.Model.Node, envPrefix, environ)
		}
		if err != nil {
			t.Errorf("%s: %v", stage.Name, err)
		}
	}
	if target, _ := file.Services[events.StageJudge].Build.(map[string]any)["target"].(string); target != "judge" {
		t.Errorf("the judge's image has the target %q", target)
	}
}

// The services for GPUs complete a training on the CPU.
func TestTorchComposedStages(t *testing.T) {
	torchTraining(t) // skips the test without torch, and sets its environment
	composedTraining(t, []string{"gpu"}, "CODEA1_DEVICE=cpu", "CODEA1_TORCH_PYTHON="+os.Getenv("CODEA1_TEST_TORCH_PYTHON"))
}

// composedTraining runs the services of profiles of compose.yaml as plain processes,
// with more variables in their environment. It returns the directory of the run.
func composedTraining(t *testing.T, profiles []string, more ...string) (run string) {
	t.Helper()
	dir := t.TempDir()
	b := startNATS(t)
	file := readCompose(t)
	stages := map[string]*child{}
	healthy := map[string]string{} // addresses of the health checks
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		service := file.Services[name]
		if !service.starts(profiles...) {
			continue
		}
		probe := fmt.Sprintf("127.0.0.1:%d", natstest.FreePort(t))
		healthy[name] = "http://" + probe + "/healthz"
		if check := strings.Join(service.Healthcheck.Test, " "); !strings.Contains(check, "'http://127.0.0.1:9100/healthz'") {
			t.Errorf("%s: health check %s", name, check)
		}
		here := strings.NewReplacer("nats://nats:4222", b.url(), "/run/secrets/bus_token", b.tokenFile(t),
			"0.0.0.0:9100", probe, "0.0.0.0:7070", "127.0.0.1:0")
		environment := []string{"CODEA1_RUNS_DIR=" + runPath(dir, "")} // of the image
		for key, value := range service.Environment {
			environment = append(environment, key+"="+here.Replace(value))
		}
		environment = append(environment, more...)
		if strings.HasPrefix(name, "recorder") { // the content of run.env
			for _, pair := range pairs(train("--steps", "2")[2:]) {
				environment = append(environment, settings.Variable(envPrefix, pair[0])+"="+pair[1])
			}
		}
		var args []string
		for _, a := range service.Command {
			args = append(args, here.Replace(a))
		}
		stages[name] = startWith(t, dir, environment, args...)
	}
	if len(stages) != 8+len(profiles) {
		t.Errorf("%d stages: %v", len(stages), slices.Sorted(maps.Keys(stages)))
	}
	eventually(t, "the page is served", func() bool {
		r, err := http.Get(healthy["dashboard"])
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	ended := make(chan string, len(stages))
	for name, p := range stages {
		go func() { <-p.ended; ended <- name }()
	}
	for range len(stages) - 1 { // the page stays
		select {
		case name := <-ended:
			if code := stages[name].wait(t); code != 0 {
				t.Fatalf("%s: exit code %d", name, code)
			}
		case <-time.After(5 * patience): // four stages with torch take minutes to start on a busy machine
			t.Fatal("the stages still run")
		}
	}
	run = filepath.Join(dir, rundir.Default, "demo")
	eventually(t, "the report is written", func() bool {
		_, err := os.Stat(rundir.Report(run))
		return err == nil
	})
	if len(profiles) == 1 { // with a Test LLM
		checkMetrics(t, strings.Replace(healthy["dashboard"], "/healthz", "/metrics", 1))
	}
	stages["dashboard"].signal(t, syscall.SIGTERM)
	if code := stages["dashboard"].wait(t); code != 0 {
		t.Errorf("dashboard: exit code %d", code)
	}
	if table := stages["dashboard"].stdout.String(); !strings.Contains(table, "Run demo: 2 of 2 steps, completed") {
		t.Errorf("the dashboard stage prints no results: %q", table)
	}
	if h := read(t, run, 2); h.ended() != events.RunCompleted {
		t.Errorf("ended with %q", h.ended())
	}
	return run
}

// Each stage of the profile for GPUs is that of the profile for CPUs in the image with
// torch. Those that compute have a GPU. The image has what CI tests.
func TestComposedGPUProfile(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	recipe, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	checks, err := os.ReadFile(filepath.Join(".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	twins := 0
	for name, service := range file.Services {
		if !slices.Contains(service.Profiles, "cpu") {
			continue
		}
		twins++
		gpu := file.Services[name+"-gpu"]
		if gpu == nil || !slices.Equal(gpu.Command, service.Command) || gpu.starts("cpu") || !gpu.starts("gpu") || service.starts("gpu") {
			t.Errorf("%s and its service for GPUs: %+v, %+v", name, service, gpu)
			continue
		}
		var environ []string
		for key, value := range gpu.Environment {
			environ = append(environ, key+"="+value)
		}
		for key, value := range service.Environment {
			if gpu.Environment[key] != value {
				t.Errorf("%s-gpu has %s=%s, want %s", name, key, gpu.Environment[key], value)
			}
		}
		var cli CLI
		parser, err := newParser(&cli)
		if err == nil {
			err = commandline.CheckEnvironment(parser.Model.Node, envPrefix, environ)
		}
		if err != nil {
			t.Errorf("%s-gpu: %v", name, err)
		}
		target, _ := gpu.Build.(map[string]any)["target"].(string)
		if !strings.Contains(string(recipe), "FROM stage AS "+target+"\n") || gpu.Image == service.Image {
			t.Errorf("%s-gpu: the Dockerfile has no target %q for the image %s", name, target, gpu.Image)
		}
		devices, recorder := len(gpu.Deploy.Resources.Reservations.Devices), gpu.Environment["CODEA1_ENGINE"] == "torch"
		if recorder != strings.HasPrefix(name, "recorder") || recorder == (devices == 1) || recorder == (gpu.Environment["CODEA1_DEVICE"] == "cuda") {
			t.Errorf("%s-gpu has %d GPUs and the variables %v", name, devices, gpu.Environment)
		}
	}
	if twins != 5 {
		t.Errorf("%d services for CPUs, want recorder, rollouts and trainers", twins)
	}
	pins := regexp.MustCompile(`\b(torch|transformers|safetensors|msgpack|bandit)==[0-9.]+`).FindAllString(string(recipe), -1)
	for _, pin := range pins {
		if !slices.Contains(strings.Fields(string(checks)), pin) {
			t.Errorf("the image has %s, CI tests another version", pin)
		}
	}
	if len(pins) != 5 {
		t.Errorf("the image has %v", pins)
	}
	if defaults, err := os.ReadFile(".env"); err != nil || !strings.Contains(string(defaults), "\nCOMPOSE_PROFILES=cpu\n") {
		t.Errorf("no profile without --profile: %s, %v", defaults, err)
	}
}

// pairs returns the names and values of flags written --name value.
func pairs(args []string) [][2]string {
	var of [][2]string
	for len(args) > 1 {
		of = append(of, [2]string{strings.TrimPrefix(args[0], "--"), args[1]})
		args = args[2:]
	}
	return of
}
