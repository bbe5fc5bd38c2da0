package enginetest_test

import (
	"testing"

	"codea1/gpuworker"
	"codea1/gpuworker/enginetest"
)

func TestBigram(t *testing.T) {
	enginetest.Run(t, enginetest.Engine{
		NewSampler: func(*testing.T) gpuworker.Sampler { return enginetest.NewBigram(1) },
		NewLearner: func(*testing.T) gpuworker.Learner { return enginetest.NewBigram(1) },
	})
}
