package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// ProbeServer returns an error if a model server cannot be used.
func ProbeServer(ctx context.Context, flags *gpuworker.EngineFlags, logger *slog.Logger) error {
	sampler, err := openServer(flags, logger)
	if err != nil {
		return err
	}
	defer sampler.Close()
	return sampler.Probe(ctx)
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
	config.HandleTimeout = Unlimited
	return config
}

// Unlimited is a time that is never over.
const Unlimited = time.Duration(math.MaxInt64 / 4)
