package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v4"

	"codea1/events"
)

// composed returns the options that the server of compose.yaml runs with, its
// files moved below dir and its port to any free one.
func composed(t *testing.T, dir string) *natsserver.Options {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services struct {
			Nats struct {
				Command []string
				Ports   []string
				Volumes []string
				Configs []struct{ Source, Target string }
			}
		}
		Configs map[string]struct{ Content string }
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	nats := file.Services.Nats
	if want := []string{"127.0.0.1:4222:4222"}; !slices.Equal(nats.Ports, want) {
		t.Errorf("ports %v, want %v: the server asks nobody who they are", nats.Ports, want)
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
	fail := func() { t.Fatalf("the command %v asks for help", args) }
	options, err := natsserver.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ContinueOnError), args, fail, fail, fail)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port = "127.0.0.1", natsserver.RANDOM_PORT
	options.NoLog, options.NoSigs = true, true
	return options
}

// A training uses the server of compose.yaml as it does its own.
func TestTrainingOnAnotherServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := natsserver.NewServer(composed(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() {
		server.Shutdown()
		server.WaitForShutdown()
	})
	if !server.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	must(t, dir, train("--steps", "2", "--name", "r", "--bus", server.ClientURL())...)
	if h := read(t, runPath(dir, "r"), 2); h.ended() != events.RunCompleted {
		t.Errorf("ended with %q", h.ended())
	}
	if _, err := os.Stat(natsPath(runPath(dir, "r"))); err == nil {
		t.Error("the run has a server's store of its own")
	}
}
