package experiment

import (
	"slices"
	"strconv"

	"codea1/consumers/dashboard"
	"codea1/consumers/evaluation"
)

// EvaluationFigures are the figures of an evaluation of an arm's runs.
type EvaluationFigures struct {
	Name    string       `json:"name"`
	Figures []NamedMeans `json:"figures"`
}

// NamedMeans is the mean of a figure over the runs that have it.
type NamedMeans struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
	Mean
}

// evaluated returns the figures of the evaluations of runs, after training or before.
func (m *Matrix) evaluated(runs []RunResult, before bool) []EvaluationFigures {
	var all []EvaluationFigures
	for i := range m.Evaluations {
		of := EvaluationFigures{Name: m.Evaluations[i].Name}
		var names []string
		values := map[string][]float64{}
		for _, seed := range m.Seeds { // in their order: the interval is drawn by it
			for j := range runs {
				if runs[j].Seed != seed {
					continue
				}
				for _, v := range runs[j].figuresOf(of.Name, before) {
					if !slices.Contains(names, v.Name) {
						names = append(names, v.Name)
					}
					values[v.Name] = append(values[v.Name], v.Value)
				}
			}
		}
		for _, name := range names {
			of.Figures = append(of.Figures, NamedMeans{Name: name, Runs: len(values[name]), Mean: meanOf(evaluation.Over(values[name]))})
		}
		if len(names) > 0 {
			all = append(all, of)
		}
	}
	return all
}

// figuresOf returns the figures of an evaluation of the run.
func (run *RunResult) figuresOf(name string, before bool) []Value {
	i := slices.IndexFunc(run.Evaluations, func(e Evaluated) bool { return e.Name == name })
	switch {
	case i < 0:
		return nil
	case before:
		return run.Evaluations[i].Before
	}
	return run.Evaluations[i].After
}

// evaluationTable returns the table of an evaluation, with the arms that have its
// figures.
func (r *Results) evaluationTable(e *Evaluation) dashboard.OverlayTable {
	t := dashboard.OverlayTable{Caption: e.caption(), Head: []string{"configuration", "runs"}}
	figures := map[string][]NamedMeans{}
	for i := range r.Arms {
		for _, of := range r.Arms[i].Evaluations {
			if of.Name == e.Name {
				figures[r.Arms[i].Name] = of.Figures
			}
		}
		for _, f := range figures[r.Arms[i].Name] {
			if title := f.Name + " (95% interval)"; !slices.Contains(t.Head, title) {
				t.Head = append(t.Head, title)
			}
		}
	}
	for i := range r.Arms {
		name := r.Arms[i].Name
		if len(figures[name]) == 0 {
			continue
		}
		row := []string{name, ""}
		runs := 0
		for _, title := range t.Head[2:] {
			text := "-"
			for _, f := range figures[name] {
				if f.Name+" (95% interval)" == title {
					text, runs = f.text("%.1f%%", "%.1f - %.1f%%"), max(runs, f.Runs)
				}
			}
			row = append(row, text)
		}
		row[1] = strconv.Itoa(runs)
		t.Rows = append(t.Rows, row)
	}
	return t
}
