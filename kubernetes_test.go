package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/gpuworker/checkpoint/objects"
)

// manifest is the part of docs/kubernetes that the test needs. The checks of .ci/run
// validate the files by the schemas of Kubernetes.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas       int
		ScaleTargetRef struct{ Name string }
		Triggers       []struct {
			Type     string
			Metadata map[string]string
		}
		Template struct {
			Spec struct {
				AutomountServiceAccountToken  *bool
				TerminationGracePeriodSeconds int
				SecurityContext               struct {
					RunAsNonRoot   bool
					SeccompProfile struct{ Type string }
				}
				Containers []struct {
					Image           string
					Args            []string
					EnvFrom         []map[string]struct{ Name string }
					SecurityContext struct {
						AllowPrivilegeEscalation *bool
						Capabilities             struct{ Drop []string }
					}
					Ports                       []struct{ ContainerPort int }
					StartupProbe, LivenessProbe struct{ HTTPGet struct{ Path string } }
					Resources                   struct{ Limits map[string]int }
				}
			}
		}
	}
}

func manifests(t *testing.T, file string) map[string]manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("docs", "kubernetes", file))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []manifest }
	var content any
	err = yaml.Unmarshal(text, &content)
	if err == nil {
		text, err = json.Marshal(content)
	}
	if err == nil {
		err = json.Unmarshal(text, &list) // its names match in any case
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for _, m := range list.Items {
		all[strings.TrimPrefix(m.Metadata.Name, "codea1-")] = m
	}
	return all
}

// Each stage has a workload with a command that the program accepts, with probes on the port
// that the stage serves, and without privileges. Those that only some runs have start with no
// replica. KEDA scales stages that may have
// replicas, on the consumers that they make.
func TestKubernetesManifests(t *testing.T) {
	all := manifests(t, "stages.yaml")
	settings := all["codea1"].Data
	delete(all, "codea1")
	for name, value := range settings {
		t.Setenv(name, value)
	}
	var want []string
	for _, s := range events.Stages {
		if s.Within == "" {
			want = append(want, s.Name)
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(all))); d != "" {
		t.Fatalf("the workloads: %s", d)
	}
	var environ []string
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	for name, m := range all {
		pod := m.Spec.Template.Spec
		c := pod.Containers[0]
		var cli CLI
		parser, err := newParser(&cli)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(c.Args); err != nil {
			t.Errorf("%s: %v: %v", name, c.Args, err)
		}
		if err := commandline.CheckEnvironment(parser.Model.Node, envPrefix, environ); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stage, always := events.ModelsBoth.Stage(name)
		always = always && !stage.Optional
		if c.Args[1] != name || always != (m.Spec.Replicas == 1) || !always && m.Spec.Replicas != 0 {
			t.Errorf("%s: command %v, %d replicas", name, c.Args, m.Spec.Replicas)
		}
		if judge := name == events.StageJudge; judge != strings.HasPrefix(c.Image, "codea1-judge:") {
			t.Errorf("%s: image %s", name, c.Image)
		}
		if gpu := c.Resources.Limits["nvidia.com/gpu"]; gpu == 1 != (stage.Role != "") || gpu == 1 && !strings.HasPrefix(c.Image, "codea1-torch:") {
			t.Errorf("%s: %d GPUs in the image %s", name, gpu, c.Image)
		}
		if hasStore := len(c.EnvFrom) == 2; hasStore != (stage.Role != "" || name == events.StageRecorder) {
			t.Errorf("%s: credentials of the store: %v", name, hasStore)
		}
		port := ":" + strconv.Itoa(c.Ports[0].ContainerPort)
		if !strings.HasSuffix(settings["CODEA1_PROBE_ADDRESS"], port) || c.StartupProbe.HTTPGet.Path != "/healthz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s: the probes do not ask %s", name, settings["CODEA1_PROBE_ADDRESS"])
		}
		escalation, account := c.SecurityContext.AllowPrivilegeEscalation, pod.AutomountServiceAccountToken
		if !pod.SecurityContext.RunAsNonRoot || escalation == nil || *escalation || account == nil || *account || !slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s has privileges", name)
		}
		if filter := pod.SecurityContext.SeccompProfile.Type; filter == "RuntimeDefault" == (name == events.StageExecution || name == events.StageJudge) {
			t.Errorf("%s: seccomp profile %s", name, filter)
		}
		if pod.TerminationGracePeriodSeconds < 45 {
			t.Errorf("%s: %d s to finish events", name, pod.TerminationGracePeriodSeconds)
		}
	}
	if _, err := objects.ParseAddress(settings["CODEA1_CHECKPOINT_STORE"]); err != nil {
		t.Error(err)
	}

	scaled := manifests(t, "keda.yaml")
	if len(scaled) == 0 {
		t.Error("nothing is scaled")
	}
	for name, m := range scaled {
		stage, _ := events.ModelsBoth.Stage(name)
		trigger := m.Spec.Triggers[0]
		if stage.Replicas != events.Many || m.Spec.ScaleTargetRef.Name != "codea1-"+name || all[name].Kind != "Deployment" || trigger.Type != "nats-jetstream" ||
			trigger.Metadata["consumer"] != name || trigger.Metadata["stream"] != "codea1-"+settings["CODEA1_RUN"] {
			t.Errorf("%s: %+v", name, m.Spec)
		}
	}
}
