package evaluation

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Estimate is a mean with its 95% interval. All three are NaN without a value; the
// interval is NaN if nothing varies that it could resample.
type Estimate struct{ Mean, Low, High float64 }

// Runs are the figures of the same evaluation in several runs, one per seed. All
// are those of one configuration.
type Runs []*Figures

// Avg returns the mean of avg@k over runs, with its interval over runs and
// problems. It is over the problems that every run has scored.
func (r Runs) Avg() Estimate {
	return crossed(r.rows(func(run int, problem string) float64 { return r[run].problems[problem].share() }))
}

// AvgMinus returns the mean difference of avg@k to the runs of another
// configuration, which are paired with these by their place, with its interval
// over pairs and problems.
func (r Runs) AvgMinus(other Runs) Estimate {
	both := slices.Concat(r, other)
	n := len(r)
	return crossed(both.rows(func(run int, problem string) float64 {
		return both[run].problems[problem].share() - both[(run+n)%len(both)].problems[problem].share()
	})[:n])
}

// rows returns a value for each run and each problem that all of them have.
func (r Runs) rows(of func(run int, problem string) float64) [][]float64 {
	var problems []string
	if len(r) > 0 {
		for problem := range r[0].problems {
			missing := slices.ContainsFunc(r, func(f *Figures) bool { _, ok := f.problems[problem]; return !ok })
			if !missing {
				problems = append(problems, problem)
			}
		}
	}
	slices.Sort(problems)
	rows := make([][]float64, len(r))
	for run := range rows {
		for _, problem := range problems {
			rows[run] = append(rows[run], of(run, problem))
		}
	}
	return rows
}

// Over returns the mean of values, one per run, with its interval over runs. It
// leaves out NaN.
func Over(values []float64) Estimate {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	return crossed([][]float64{known})
}

// crossed returns the mean of a table of runs and problems. Its interval resamples
// the runs and, independently, the problems (the pigeonhole bootstrap of Owen
// 2007), because both are samples: other seeds and other problems would give other
// values. With one run it is Interval.
func crossed(rows [][]float64) Estimate {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	columns := len(rows[0])
	sums := make([]float64, columns)
	for _, row := range rows {
		for i, v := range row {
			sums[i] += v
		}
	}
	e := Estimate{Mean: mean(sums) / float64(len(rows))}
	switch {
	case len(rows) == 1:
		e.Low, e.High = Interval(rows[0])
		return e
	case columns == 1:
		e.Low, e.High = Interval(slices.Concat(rows...))
		return e
	}
	random := rand.New(rand.NewPCG(intervalSeed, intervalStream))
	means := make([]float64, resamples)
	for m := range means {
		clear(sums)
		for range rows {
			for i, v := range rows[random.IntN(len(rows))] {
				sums[i] += v
			}
		}
		for range columns {
			means[m] += sums[random.IntN(columns)]
		}
		means[m] /= float64(len(rows) * columns)
	}
	e.Low, e.High = percentiles(means)
	return e
}
