package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/producers/problems"
	"codea1/replay"
)

// A ground truth that is checked may take its time: some of HumanEval's need
// more than ten seconds and a gigabyte. The command bounds a problem as a whole.
const (
	checkCallTimeout = time.Minute
	checkMemoryMiB   = 2 << 10
)

// checker opens the sandbox when the first problem is checked.
type checker struct {
	open func() (*sandbox.Pool, error)
}

// Check implements problems.Checker.
func (c *checker) Check(ctx context.Context, code, entryPoint string, tests []string) ([]events.GoldenVerdict, error) {
	pool, err := c.open()
	if err != nil {
		return nil, err
	}
	return execution.New(pool).CheckTruth(ctx, code, entryPoint, tests)
}

// newChecker returns the sandbox as package problems wants it, and what closes
// it.
func newChecker(ctx context.Context, logger *slog.Logger) (problems.Checker, func() error) {
	var opened *sandbox.Pool
	open := sync.OnceValues(func() (*sandbox.Pool, error) {
		var err error
		opened, err = sandboxfusion.Open(ctx, &sandbox.Flags{
			Python: os.Getenv(envName("python")), SandboxLevel: os.Getenv(envName("sandbox-level")), Sandbox: os.Getenv(envName("sandbox")),
			CallTimeout: checkCallTimeout, MemoryMiB: checkMemoryMiB,
		}, logger)
		return opened, err
	})
	return &checker{open}, func() error {
		if opened == nil {
			return nil
		}
		return opened.Close()
	}
}

// recipes hands the reward recipes to package replay.
type recipes struct{}

// Recipe implements replay.Recipes.
func (recipes) Recipe(name string, alpha float64) (replay.Score, error) {
	recipe, err := rewards.New(name, alpha)
	if err != nil {
		return nil, err
	}
	return scoreOf(recipe), nil
}

// File implements replay.Recipes.
func (recipes) File(path string) (string, replay.Score, error) {
	recipe, err := rewards.Load(path, rewards.DefaultAlpha)
	if err != nil {
		return "", nil, err
	}
	return recipe.Name(), scoreOf(recipe), nil
}

func scoreOf(recipe rewards.Recipe) replay.Score {
	return func(group *events.CodeExecuted) (*events.GroupRewarded, error) { return rewards.Score(recipe, group) }
}

// rewardName is the name of a reward recipe. A recipe file is read at once and
// replaced by the name of its formula, which holds the whole formula. The saved
// configuration and run.started therefore do not need the file.
type rewardName string

// Decode implements kong.MapperValue.
func (n *rewardName) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("recipe", &text); err != nil {
		return err
	}
	recipe, err := rewards.Load(text, rewards.DefaultAlpha)
	if err != nil {
		return err
	}
	*n = rewardName(recipe.Name())
	return nil
}

// recipe returns the recipe of a run.
func (f *RunFlags) recipe() (rewards.Recipe, error) { return rewards.New(string(f.Reward), f.Alpha) }

// needsGolden reports whether the recipe rewards by golden tests.
func (f *RunFlags) needsGolden() bool {
	recipe, err := f.recipe()
	return err == nil && recipe.Rules().Golden
}
