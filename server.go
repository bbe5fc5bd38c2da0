package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/openai"
)

// openServer returns the sampler of a model server. It sends nothing.
func openServer(flags *gpuworker.EngineFlags, logger *slog.Logger) (*openai.Sampler, error) {
	var stop []string
	if flags.Stop != "" {
		stop = strings.Split(strings.ReplaceAll(flags.Stop, `\n`, "\n"), "|")
	}
	return openai.New(openai.Options{
		URL: flags.Server, Model: flags.Model, KeyFile: flags.ServerKeyFile, CAFile: flags.ServerCAFile, Stop: stop,
		Completions: flags.ServerPrompt == gpuworker.PromptCompletion, LogProbs: flags.ServerLogProbs,
		Requests: flags.ServerRequests, Timeout: flags.ServerTimeout, Logger: logger,
	})
}

// probeServer returns an error if a model server cannot be used.
func probeServer(ctx context.Context, flags *gpuworker.EngineFlags, logger *slog.Logger) error {
	sampler, err := openServer(flags, logger)
	if err != nil {
		return err
	}
	defer sampler.Close()
	return sampler.Probe(ctx)
}

// onServer reports whether the model of a role is on a model server. In a training it
// is the frozen one.
func (s *RunSettings) onServer(role events.Role) bool {
	return s.Engine.Sampler == gpuworker.SamplerOpenAI && (s.Models.Frozen == "" || s.models().Frozen(role))
}

// checkSampler refuses vLLM beside an engine that cannot give it weights, and to train a
// model on a server.
func (s *RunSettings) checkSampler() error {
	switch {
	case s.Engine.Sampler == gpuworker.SamplerVLLM && s.Engine.Engine != gpuworker.EngineTorch:
		return fmt.Errorf("--sampler %s needs --engine %s, which gives vLLM the weights", gpuworker.SamplerVLLM, gpuworker.EngineTorch)
	case s.Engine.Sampler == gpuworker.SamplerVLLM && s.Curriculum.Temperature != 1 && (s.Sampling.TopP < 1 || s.Sampling.TopK > 0):
		return fmt.Errorf("--sampler %s: vLLM has the log-probs of training at --temperature 1 or without --top-p and --top-k: change one of them or --sampler", gpuworker.SamplerVLLM)
	case s.Engine.Sampler != gpuworker.SamplerOpenAI:
		return nil
	case s.trains() && s.Models.Frozen == "":
		return fmt.Errorf("--sampler %s: a training gives the sampler new weights after each step, and OpenAI's interface takes none: train with --sampler %s, name the role that the server samples with --frozen, or evaluate the server with codea1 eval URL",
			gpuworker.SamplerOpenAI, gpuworker.SamplerEngine)
	case s.Engine.Model == "":
		return fmt.Errorf("--sampler %s: name the model of the server with --model", gpuworker.SamplerOpenAI)
	}
	return nil
}

// serverStart returns version 0 of a model on a server. Its weights are not known, so
// the hash is that of its name.
func serverStart(flags *gpuworker.EngineFlags) events.Checkpoint {
	sum := sha256.Sum256([]byte(flags.Model))
	return events.Checkpoint{URI: flags.Server + "#" + flags.Model, SHA256: hex.EncodeToString(sum[:])}
}

// batchForServer changes the configuration of a rollout stage that samples on a server. Each
// group is a batch, so that its completions are published as soon as they are there.
// The sampler takes requests in their order, so few groups are in part when the
// process is killed. An outage of the server has no limit, as one of the bus.
func batchForServer(config stage.Config, requests int) stage.Config {
	config.Batch, config.Linger, config.Concurrency = 1, 0, requests
	config.HandleTimeout = unlimited
	return config
}

// unlimited is a time that is never over.
const unlimited = time.Duration(math.MaxInt64 / 4)
