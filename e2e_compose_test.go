package main

import (
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"

	"codea1/events"
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
	Entrypoint  []string
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Secrets     []string
	Profiles    []string
	Configs     []struct{ Source, Target string }
	Healthcheck struct{ Test []string }
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
	dir := t.TempDir()
	b := startNATS(t)
	file := readCompose(t)
	stages := map[string]*process{}
	healthy := map[string]string{} // addresses of the health checks
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		service := file.Services[name]
		if service.Image != "codea1" || len(service.Profiles) > 0 {
			continue
		}
		probe := freeAddress(t)
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
		if name == "recorder" { // the content of run.env
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
	if len(stages) != 9 {
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
	for name, p := range stages {
		if name == "dashboard" {
			continue
		}
		if code := p.wait(t); code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	run := filepath.Join(dir, rundir.Default, "demo")
	eventually(t, "the report is written", func() bool {
		_, err := os.Stat(rundir.Report(run))
		return err == nil
	})
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

// freeAddress returns an address on loopback whose port is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
