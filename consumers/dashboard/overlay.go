package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
)

// Overlay is a page about several runs: tables, and charts with a line for each
// configuration, which is the mean over its runs.
type Overlay struct {
	Title, Headline string
	Tables          []OverlayTable
	Lines           []OverlayLine
}

// OverlayTable is a table of an Overlay. The first column of it is text, the others
// are numbers.
type OverlayTable struct {
	Caption, Note string
	Head          []string
	Rows          [][]string
}

// OverlayLine is a line in the charts of an Overlay.
type OverlayLine struct {
	Name string
	Runs []*State
}

var overlayTemplate = template.Must(template.New("overlay.html").ParseFS(files, "report/overlay.html"))

// overlayMeasures are the charts of the training steps.
var overlayMeasures = []struct {
	measure
	title string
}{
	{rewardCode, "Reward of the Code LLM"}, {rewardTest, "Reward of the Test LLM"},
	{passNew, "Share of new tests passed"}, {passHist, "Share of historical tests passed"},
	{kept, "Tests kept per suite"}, {wrongOrDiscarded, "Tests wrong as stated or discarded per suite"},
	{entropyCode, "Entropy of the Code LLM, nats per token"}, {entropyTest, "Entropy of the Test LLM, nats per token"},
	{klCode, "KL divergence of the Code LLM to the reference"}, {klTest, "KL divergence of the Test LLM to the reference"},
}

// WriteOverlay writes an Overlay as one HTML file, which loads nothing, like a
// report.
func WriteOverlay(w io.Writer, o *Overlay) error {
	names := []string{}
	for _, line := range o.Lines {
		names = append(names, line.Name)
	}
	var page bytes.Buffer
	if err := overlayTemplate.Execute(&page, o); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return writeAlone(w, page.Bytes(), "", object{"names": names, "charts": o.charts()})
}

// charts returns the charts that have a value, each with its steps and, for each
// line, a value per step.
func (o *Overlay) charts() []object {
	all := []object{}
	add := func(title string, of func(s *State, see func(step int, value float64))) {
		lines, steps := make([]map[int]Mean, len(o.Lines)), map[int]bool{}
		for i, line := range o.Lines {
			lines[i] = map[int]Mean{}
			for _, run := range line.Runs {
				of(run, func(step int, value float64) {
					if !math.IsNaN(value) {
						m := lines[i][step]
						m.add(value)
						lines[i][step], steps[step] = m, true
					}
				})
			}
		}
		if len(steps) == 0 {
			return
		}
		x := []int{}
		for step := range steps {
			x = append(x, step)
		}
		slices.Sort(x)
		columns := [][]number{}
		for _, line := range lines {
			column := make([]number, len(x))
			for i, step := range x {
				column[i] = line[step].number()
			}
			columns = append(columns, column)
		}
		all = append(all, object{"title": title, "step": x, "lines": columns})
	}
	for _, f := range EvalFigures {
		add("Held-out problems: "+f.Title, func(s *State, see func(int, float64)) {
			for _, e := range s.evals {
				see(e.Step, f.Of(e))
			}
		})
	}
	point := func(title string, of func(*Point) float64) {
		add(title, func(s *State, see func(int, float64)) {
			for i := range s.Series.points {
				see(1+i*s.Series.stride, of(&s.Series.points[i]))
			}
		})
	}
	for _, m := range overlayMeasures {
		point(m.title, func(p *Point) float64 { return p.means[m.measure].Value() })
	}
	point("Tests in the Mistake Book", func(p *Point) float64 { return float64(p.Size) })
	return all
}
