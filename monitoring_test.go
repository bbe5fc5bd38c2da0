package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// monitoring has the files of Prometheus and Grafana.
var monitoring = filepath.Join("consumers", "dashboard", "monitoring")

// promtool runs Prometheus's own checker in the directory of its files.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		required(t, "no promtool: the Debian package prometheus has it")
	}
	check := exec.Command("promtool", args...)
	check.Dir, check.Stdin = monitoring, strings.NewReader(input)
	if out, err := check.CombinedOutput(); err != nil || input != "" && len(out) > 0 {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// checkMetrics checks the metrics of a dashboard stage, and that the alerts and
// Grafana's dashboard use no other ones.
func checkMetrics(t *testing.T, url string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	served, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`codea1_training_step{run="demo"} 2`, `codea1_policy_staleness{role="test",run="demo"} 0`, "go_goroutines ", "go_build_info{", "process_open_fds "} {
		if !strings.Contains(string(served), "\n"+want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	known := string(served)
	for _, list := range []string{filepath.Join("events", "stage", "SCALING.md"), filepath.Join("docs", "reference.md")} { // tests compare both with the code
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		known += string(text)
	}
	name := regexp.MustCompile(`\bcodea1_\w+`)
	for _, file := range []string{"alerts.yml", filepath.Join("grafana", "codea1.json")} {
		text, err := os.ReadFile(filepath.Join(monitoring, file))
		if err != nil {
			t.Fatal(err)
		}
		used := name.FindAllString(string(text), -1)
		if len(used) < 5 {
			t.Errorf("%s uses the metrics %v", file, used)
		}
		for _, metric := range used {
			metric = strings.TrimSuffix(metric, "_bucket") // of a histogram
			if !regexp.MustCompile(`\b` + metric + `\b`).MatchString(known) {
				t.Errorf("%s uses %s, which does not exist", file, metric)
			}
		}
	}
	promtool(t, string(served), "check", "metrics")
}

func TestAlerts(t *testing.T) {
	promtool(t, "", "check", "config", "prometheus.yml")
	promtool(t, "", "test", "rules", "alerts_test.yml")
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	alerts, err := os.ReadFile(filepath.Join(monitoring, "alerts.yml"))
	if err == nil {
		err = yaml.Unmarshal(alerts, &rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(monitoring, "alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules.Groups[0].Rules {
		if n := strings.Count(string(tests), "alertname: "+rule.Alert); n < 2 {
			t.Errorf("alert %s: %d tests, want one that fires and one that does not", rule.Alert, n)
		}
	}
}

// The profile monitoring scrapes every stage of compose.yaml and starts Grafana with
// the dashboard.
func TestComposedMonitoring(t *testing.T) {
	file := readCompose(t)
	config, err := os.ReadFile(filepath.Join(monitoring, "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		if scraped := strings.Contains(string(config), "- "+name+"\n"); scraped != (len(s.Command) > 0 && s.Command[0] == "stage") {
			t.Errorf("%s: scraped %v", name, scraped)
		}
	}
	for _, name := range []string{"prometheus", "grafana"} {
		s := file.Services[name]
		if s == nil || !slices.Equal(s.Profiles, []string{"monitoring"}) || len(s.Ports) != 1 || !strings.HasPrefix(s.Ports[0], "127.0.0.1:") {
			t.Errorf("%s: %+v: want the profile monitoring and a port on loopback", name, s)
			continue
		}
		for _, volume := range s.Volumes {
			path, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(path); strings.HasPrefix(path, ".") && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if s := file.Services["prometheus"]; s != nil && !slices.Contains(s.Command, "--enable-feature=exemplar-storage") {
		t.Error("Prometheus drops the exemplars of the stages")
	}
	var dashboard struct {
		UID    string
		Panels []struct {
			ID         int
			Title      string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
			GridPos    struct{ X, Y, W, H int }
		}
	}
	text, err := os.ReadFile(filepath.Join(monitoring, "grafana", "codea1.json"))
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	sources, readErr := os.ReadFile(filepath.Join(monitoring, "grafana", "datasources.yml"))
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	places := map[[2]int]bool{}
	var rules strings.Builder
	for i, p := range dashboard.Panels {
		place := [2]int{p.GridPos.X, p.GridPos.Y}
		if p.ID != i+1 || len(p.Targets) == 0 || places[place] || p.GridPos.X+p.GridPos.W > 24 || !strings.Contains(string(sources), "uid: "+p.Datasource.UID+"\n") {
			t.Errorf("panel %q: %+v", p.Title, p)
		}
		places[place] = true
		for j, target := range p.Targets {
			fmt.Fprintf(&rules, "- {record: 'panel:%d:%d', expr: %q}\n", i, j, strings.ReplaceAll(target.Expr, "$run", ".*"))
		}
	}
	if len(places) == 0 {
		t.Error("the dashboard has no panels")
	}
	expressions := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(expressions, []byte("groups:\n- name: panels\n  rules:\n"+strings.ReplaceAll(rules.String(), "- {", "  - {")), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", expressions)
}
