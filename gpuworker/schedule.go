package gpuworker

import (
	"errors"
	"math"
)

// Schedule is the learning rate of a run: a linear warm-up, then half a cosine
// down to a share of the peak.
type Schedule struct {
	Base     float64 // peak learning rate
	Warmup   int     // optimizer steps of the linear warm-up
	Total    int     // optimizer steps of the whole schedule
	MinRatio float64 // the final rate as a share of Base, in [0, 1]
}

// At returns the learning rate of the optimizer step after taken steps. The
// first rate is Base/Warmup, because a step with rate 0 would have no effect.
// After Total steps the rate stays at MinRatio*Base.
func (s Schedule) At(taken int) float64 {
	if taken < s.Warmup {
		return s.Base * float64(taken+1) / float64(s.Warmup)
	}
	progress := 1.0
	if s.Total > s.Warmup {
		progress = min(1, float64(taken-s.Warmup)/float64(s.Total-s.Warmup))
	}
	return s.Base * (s.MinRatio + (1-s.MinRatio)*(1+math.Cos(math.Pi*progress))/2)
}

func (s Schedule) validate() error {
	switch {
	case !(s.Base > 0) || math.IsInf(s.Base, 0):
		return errors.New("learning rate must be above 0")
	case s.Warmup < 0:
		return errors.New("warm-up steps must not be negative")
	case s.Total < 1:
		return errors.New("total optimizer steps must be 1 or more")
	case !(s.MinRatio >= 0 && s.MinRatio <= 1):
		return errors.New("minimum learning rate ratio is outside 0 to 1")
	}
	return nil
}
