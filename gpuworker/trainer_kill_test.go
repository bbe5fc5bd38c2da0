package gpuworker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"codea1/events"
	"codea1/events/natsbus"
	"codea1/gpuworker"
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
	fatalStep    = 2
)

var moments = []string{"before update", "between updates", "while saving", "before rename", "before publish", "after publish"}

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

			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), victimEnv+"="+string(role), victimMoment+"="+moment,
				victimURL+"="+s.URL(natsbus.PipelineUser), victimDir+"="+dir, victimStart+"="+start)
			out, err := cmd.CombinedOutput()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
				t.Fatalf("the trainer ended by itself: %v: %s", err, out)
			}
			if err := run(t, trainerConfig(bus, role, dir, start)); err != nil {
				t.Fatal(err)
			}
			if d := sameUpdates(want, updates(t, bus, sampleRun.Steps)); d != "" {
				t.Error(d)
			}
		})
	}
}
