package gpuworker_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
	"codea1/events/natsbus"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/checkpoint/objects"
	"codea1/gpuworker/tiny"
)

// A victim is a trainer process that kills itself with SIGKILL at a given moment of
// its second step.
const (
	victimEnv    = "CODEA1_TRAINER_VICTIM" // the role
	victimMoment = "CODEA1_TRAINER_VICTIM_MOMENT"
	victimURL    = "CODEA1_TRAINER_VICTIM_URL"
	victimDir    = "CODEA1_TRAINER_VICTIM_DIR"
	victimStart  = "CODEA1_TRAINER_VICTIM_START"
	victimStore  = "CODEA1_TRAINER_VICTIM_STORE"
	fatalStep    = 2
)

var moments = []string{"before update", "between updates", "while saving", "before rename", "before publish", "after publish"}

// uploadMoments are those of a trainer with a store.
var uploadMoments = []string{"while uploading", "before the last file", "after the last file"}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // wait for the signal
}

func victim(role string) {
	moment := os.Getenv(victimMoment)
	bus, err := natsbus.Connect(context.Background(), natsbus.Config{URL: os.Getenv(victimURL)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	config := trainerConfig(&fatalBus{Bus: bus, moment: moment}, events.Role(role), os.Getenv(victimDir), os.Getenv(victimStart))
	config.Learner = &fatalLearner{Engine: newEngine(99), moment: moment}
	if slices.Contains(uploadMoments, moment) {
		remote := stored(os.Getenv(victimStore), config.Role)
		remote.Objects = fatalObjects{remote.Objects, moment}
		config.Remote = remote
	}
	trainer, err := gpuworker.NewTrainer(config)
	if err == nil {
		err = trainer.Run(context.Background())
	}
	fmt.Println("the trainer was not killed:", err)
	os.Exit(1)
}

type fatalLearner struct {
	*tiny.Engine
	moment string
	saves  int
}

func (l *fatalLearner) Update(ctx context.Context, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	if l.saves == fatalStep-1 && l.moment == "before update" {
		die()
	}
	stats, err := l.Engine.Update(ctx, sequences, config)
	if l.saves == fatalStep-1 && l.moment == "between updates" {
		die()
	}
	return stats, err
}

func (l *fatalLearner) Save(ctx context.Context, dir string) error {
	l.saves++
	if l.saves == fatalStep && l.moment == "while saving" {
		_ = os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("half a file"), 0o644)
		die()
	}
	err := l.Engine.Save(ctx, dir)
	if l.saves == fatalStep && l.moment == "before rename" {
		die()
	}
	return err
}

type fatalObjects struct {
	checkpoint.Objects
	moment string
}

func (o fatalObjects) Put(ctx context.Context, key, file string) error {
	ofStep := strings.Contains(key, fmt.Sprintf("/v%06d-", fatalStep))
	last := strings.HasSuffix(key, "/SHA256SUMS")
	if ofStep && (last && o.moment == "before the last file" || o.moment == "while uploading" && strings.HasSuffix(key, "/model.safetensors")) {
		die()
	}
	err := o.Objects.Put(ctx, key, file)
	if ofStep && last && o.moment == "after the last file" {
		die()
	}
	return err
}

// stored returns the copies of a role in a directory that is a store.
func stored(dir string, role events.Role) *checkpoint.Remote {
	store, err := objects.Open(&objects.Address{Dir: filepath.Join(dir, "store")})
	if err != nil {
		panic(err)
	}
	return &checkpoint.Remote{Objects: store, Run: sampleRun.Name, Role: role, Cache: filepath.Join(dir, "cache"), Logger: slog.New(slog.DiscardHandler)}
}

// The next trainer may run on the same machine, with the files of the killed one, or on
// another one, which has only the store.
func TestKilledUpload(t *testing.T) {
	t.Parallel()
	start := initial(t)
	role := events.RoleCode
	want := reference(t, role, start)
	for i, moment := range uploadMoments {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, same machine %v", moment, same), func(t *testing.T) {
				t.Parallel()
				s := server(t)
				bus := connect(t, s)
				publish(t, bus, sampleRun.Shuffled(uint64(i)))
				dir, shared := filepath.Join(t.TempDir(), "checkpoints"), t.TempDir()
				killTrainer(t, s, role, moment, dir, start, victimStore+"="+shared)
				if !same {
					dir = filepath.Join(t.TempDir(), "checkpoints")
				}
				config := trainerConfig(bus, role, dir, start)
				config.Remote = stored(shared, role)
				if err := run(t, config); err != nil {
					t.Fatal(err)
				}
				if d := sameUpdates(want, updates(t, bus, sampleRun.Steps)); d != "" {
					t.Error(d)
				}
				third := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "checkpoints"), Run: sampleRun.Name, Role: role}
				if err := stored(shared, role).Restore(t.Context(), third); err != nil {
					t.Fatal(err)
				}
				if _, err := third.Read(t.Context(), sampleRun.Steps); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

type fatalBus struct {
	events.Bus
	moment    string
	published int
}

func (b *fatalBus) Publish(ctx context.Context, messages ...events.Message) error {
	b.published++
	if b.published == fatalStep && b.moment == "before publish" {
		die()
	}
	err := b.Bus.Publish(ctx, messages...)
	if b.published == fatalStep && b.moment == "after publish" {
		die()
	}
	return err
}

// killTrainer runs a victim until it is killed.
func killTrainer(t *testing.T, s *natsbus.Server, role events.Role, moment, dir, start string, more ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), victimEnv+"="+string(role), victimMoment+"="+moment,
		victimURL+"="+s.URL(natsbus.PipelineUser), victimDir+"="+dir, victimStart+"="+start), more...)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the trainer ended by itself: %v: %s", err, out)
	}
}

func TestKilledTrainerTrainsNoStepTwiceAndSkipsNone(t *testing.T) {
	t.Parallel()
	start := initial(t)
	role := events.RoleTest
	want := reference(t, role, start)
	for i, moment := range moments {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			bus := connect(t, s)
			publish(t, bus, sampleRun.Shuffled(uint64(i)))
			dir := filepath.Join(t.TempDir(), "checkpoints")

			killTrainer(t, s, role, moment, dir, start)
			if err := run(t, trainerConfig(bus, role, dir, start)); err != nil {
				t.Fatal(err)
			}
			if d := sameUpdates(want, updates(t, bus, sampleRun.Steps)); d != "" {
				t.Error(d)
			}
		})
	}
}
