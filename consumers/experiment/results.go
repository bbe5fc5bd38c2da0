package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"codea1/consumers/dashboard"
	"codea1/consumers/evaluation"
)

// Results are the results of an experiment, as far as its runs are completed. They
// follow from the logs of the runs alone.
type Results struct {
	Name     string      `json:"name"`
	About    string      `json:"about,omitempty"`
	Baseline string      `json:"baseline"`
	Seeds    []uint64    `json:"seeds"`
	Problems int         `json:"heldout_problems"` // the most of a run
	Answers  int         `json:"answers"`          // k of avg@k
	Arms     []ArmResult `json:"arms"`             // first the models before training

	Evaluated []string `json:"evaluated_problems,omitempty"` // of the evaluations of the runs

	matrix *Matrix
	total  int // runs planned
}

// ArmResult is the result of an arm.
type ArmResult struct {
	Name     string            `json:"name"`
	Preset   string            `json:"preset,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Figures  map[string]Figure `json:"figures"` // by name; without those that no run measured
	Runs     []RunResult       `json:"runs"`    // completed

	Configuration map[string]string `json:"configuration,omitempty"` // all settings that decide the results, but the seed

	Evaluations []EvaluationFigures `json:"evaluations,omitempty"`

	states []*dashboard.State
}

// RunResult is the result of a run.
type RunResult struct {
	Name    string             `json:"name"`
	Seed    uint64             `json:"seed"`
	Steps   int                `json:"steps"`
	Tokens  int64              `json:"rollout_tokens"`
	Seconds float64            `json:"seconds"`
	Kept    int64              `json:"kept_tests,omitempty"` // of the suites that were trained on; absent: none, or not recorded
	Figures map[string]float64 `json:"figures"`

	Semantics int                  `json:"semantics,omitempty"`
	Build     string               `json:"build,omitempty"`
	Inputs    Inputs               `json:"inputs,omitzero"`
	Before    *evaluation.Recorded `json:"before,omitempty"` // training
	After     *evaluation.Recorded `json:"after,omitempty"`

	Evaluations []Evaluated `json:"evaluations,omitempty"`
}

// Figure is a figure of an arm: the mean over seeds with its 95% interval, and the
// paired difference to the baseline. The intervals of avg are over seeds and
// problems, the others over seeds. A value is absent if it is not known.
type Figure struct {
	Mean
	Difference *Mean `json:"difference,omitempty"`
}

// Mean is a mean with its 95% interval.
type Mean struct {
	Value float64  `json:"mean"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

func meanOf(e evaluation.Estimate) Mean {
	m := Mean{Value: e.Mean}
	if !math.IsNaN(e.Low) {
		m.Low, m.High = &e.Low, &e.High
	}
	return m
}

const (
	// beforeTraining is the row of the models that the runs start from.
	beforeTraining = "before training"
	avgFigure      = "avg"
	passFigure     = "pass_at_k"
)

// figures are the columns of the results.
var figures = append(slices.Clone(dashboard.EvalFigures), dashboard.EvalFigure{
	Name: passFigure, Title: "Code LLM pass@k", Of: func(e *dashboard.Eval) float64 {
		if at := e.PassAt(); len(at) > 0 {
			return at[len(at)-1]
		}
		return math.NaN()
	},
})

// measured are the evaluations of an arm, by seed.
type measured map[uint64]*dashboard.Eval

// add adds an evaluation, unless a part of it is missing.
func (m measured) add(seed uint64, e *dashboard.Eval) {
	if e != nil && e.Complete() {
		m[seed] = e
	}
}

// newResults compares the completed runs. records has those of runs.
func newResults(m *Matrix, runs []*Run, records []*Record, identities map[*Arm]*Identity) *Results {
	r := &Results{Name: m.Name, About: strings.TrimSpace(m.About), Baseline: m.Baseline, Seeds: m.Seeds, matrix: m, total: len(runs)}
	after, start, startTest := map[string]measured{}, measured{}, measured{}
	results := map[string][]RunResult{}
	states := map[string][]*dashboard.State{}
	r.Evaluated = evaluated(records)
	for i, run := range runs {
		record, arm := records[i], run.Arm.Name
		if !record.completed() {
			continue
		}
		if after[arm] == nil {
			after[arm] = measured{}
		}
		after[arm].add(run.Seed, record.last())
		if arm == m.Baseline || start[run.Seed] == nil {
			start.add(run.Seed, record.before())
		}
		if e := record.before(); e != nil && e.Suites > 0 && startTest[run.Seed] == nil {
			startTest.add(run.Seed, e)
		}
		one := r.result(run, record)
		if e := after[arm][run.Seed]; e != nil {
			r.Problems, r.Answers = max(r.Problems, e.Problems), max(r.Answers, e.Answers)
			for _, f := range figures {
				if v := f.Of(e); !math.IsNaN(v) {
					one.Figures[f.Name] = v
				}
			}
		}
		results[arm] = append(results[arm], one)
		if record.State != nil {
			states[arm] = append(states[arm], record.State)
		}
	}
	before := m.compare(start, after[m.Baseline])
	for name, f := range m.compare(startTest, after[m.Baseline]) { // the baseline may have no Test LLM
		if _, known := before[name]; !known {
			before[name] = f
		}
	}
	r.Arms = append(r.Arms, ArmResult{Name: beforeTraining, Figures: before, Evaluations: m.evaluated(slices.Concat(slices.Collect(maps.Values(results))...), true)})
	for i := range m.Arms {
		arm := &m.Arms[i]
		out := ArmResult{
			Name: arm.Name, Preset: arm.Preset, Settings: map[string]string{},
			Figures: m.compare(after[arm.Name], after[m.Baseline]), Runs: results[arm.Name], states: states[arm.Name],
			Evaluations: m.evaluated(results[arm.Name], false),
		}
		for _, s := range arm.Settings {
			out.Settings[s.Key] = s.Value
		}
		if id := identities[arm]; id != nil && len(out.Runs) > 0 {
			out.Configuration = id.Settings
		}
		if arm.Name == m.Baseline {
			for name, f := range out.Figures {
				f.Difference = nil
				out.Figures[name] = f
			}
		}
		r.Arms = append(r.Arms, out)
	}
	return r
}

// evaluated returns the problems of all evaluations, sorted.
func evaluated(records []*Record) []string {
	ids := map[string]bool{}
	for _, record := range records {
		if !record.completed() {
			continue
		}
		for _, e := range []*dashboard.Eval{record.before(), record.last()} {
			if e != nil {
				for _, id := range e.ProblemIDs() {
					ids[id] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// result returns the result of a completed run, without its figures.
func (r *Results) result(run *Run, record *Record) RunResult {
	one := RunResult{
		Name: run.Name, Seed: run.Seed, Steps: record.trained(), Tokens: record.Tokens, Seconds: record.Elapsed.Seconds(), Figures: map[string]float64{},
		Semantics: Semantics, Inputs: record.Inputs, Kept: record.Kept, Evaluations: run.evaluations(),
	}
	if record.recorded != nil {
		one.Build = record.recorded.Build
	} else {
		one.Build = record.Build
	}
	for _, e := range []struct {
		of *dashboard.Eval
		to **evaluation.Recorded
	}{{record.before(), &one.Before}, {record.last(), &one.After}} {
		if e.of != nil && e.of.Complete() {
			*e.to = e.of.Record(r.Evaluated)
		}
	}
	return one
}

// compare returns the figures of an arm and their differences to those of the
// baseline.
func (m *Matrix) compare(arm, baseline measured) map[string]Figure {
	var all, paired, with evaluation.Runs
	columns := make([]struct{ values, changes []float64 }, len(figures))
	for _, seed := range m.Seeds {
		e, base := arm[seed], baseline[seed]
		if e == nil {
			continue
		}
		all = append(all, &e.Figures)
		if base != nil {
			paired, with = append(paired, &e.Figures), append(with, &base.Figures)
		}
		for i, f := range figures {
			columns[i].values = append(columns[i].values, f.Of(e))
			if base != nil {
				columns[i].changes = append(columns[i].changes, f.Of(e)-f.Of(base))
			}
		}
	}
	out := map[string]Figure{}
	for i, f := range figures {
		value, change := evaluation.Over(columns[i].values), evaluation.Over(columns[i].changes)
		if f.Name == avgFigure {
			value, change = all.Avg(), paired.AvgMinus(with)
		}
		if math.IsNaN(value.Mean) {
			continue
		}
		figure := Figure{Mean: meanOf(value)}
		if !math.IsNaN(change.Mean) {
			difference := meanOf(change)
			figure.Difference = &difference
		}
		out[f.Name] = figure
	}
	return out
}

// completed counts the completed runs.
func (r *Results) completed() int {
	n := 0
	for i := range r.Arms {
		n += len(r.Arms[i].Runs)
	}
	return n
}

func (r *Results) headline() string {
	var seeds []string
	for _, s := range r.Seeds {
		seeds = append(seeds, strconv.FormatUint(s, 10))
	}
	return fmt.Sprintf("%d of %d runs completed; seeds %s; %d held-out problems", r.completed(), r.total, strings.Join(seeds, ", "), r.Problems)
}

// tables returns the tables of the results: the Code LLM and, if there is one, the
// Test LLM.
func (r *Results) tables() []dashboard.OverlayTable {
	title := func(f dashboard.EvalFigure, role string) string {
		title := strings.Replace(strings.TrimPrefix(f.Title, role+" "), "@k", "@"+strconv.Itoa(r.Answers), 1)
		return title + " (95% interval)"
	}
	var tables []dashboard.OverlayTable
	for _, role := range []string{"Code LLM", "Test LLM"} {
		t := dashboard.OverlayTable{Caption: role, Head: []string{"configuration", "runs"}}
		var columns []dashboard.EvalFigure
		for _, f := range figures {
			if !strings.HasPrefix(f.Title, role) {
				continue
			}
			columns = append(columns, f)
			t.Head = append(t.Head, title(f, role))
			if f.Name == avgFigure {
				t.Head = append(t.Head, "minus "+r.Baseline+" (95% interval)")
			}
		}
		t.Head = append(t.Head, "rollout tokens per run")
		for i := range r.Arms {
			if row, ok := r.row(&r.Arms[i], columns); ok {
				t.Rows = append(t.Rows, row)
			}
		}
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	if len(tables) > 0 {
		tables[0].Note = "Intervals of avg@k resample seeds and problems, the others seeds; one seed gives none over seeds. Differences are paired by seed and problem."
	}
	for i := range r.matrix.Evaluations {
		if t := r.evaluationTable(&r.matrix.Evaluations[i]); len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// row returns the row of an arm; false if it has none of the figures.
func (r *Results) row(arm *ArmResult, columns []dashboard.EvalFigure) ([]string, bool) {
	row, known := []string{arm.Name, strconv.Itoa(len(arm.Runs))}, false
	if arm.Name == beforeTraining {
		row[1] = ""
	}
	for _, f := range columns {
		figure, ok := arm.Figures[f.Name]
		known = known || ok
		text := "-"
		if ok {
			text = figure.text("%.1f%%", "%.1f - %.1f%%")
		}
		row = append(row, text)
		if f.Name == avgFigure {
			text = ""
			if figure.Difference != nil {
				text = figure.Difference.text("%+.1f points", "%+.1f to %+.1f")
			}
			row = append(row, text)
		}
	}
	tokens := ""
	if n := int64(len(arm.Runs)); n > 0 {
		var sum int64
		for i := range arm.Runs {
			sum += arm.Runs[i].Tokens
		}
		tokens = english.Sprint(sum / n)
	}
	return append(row, tokens), known
}

// text writes the mean and, if it is known, its interval, in hundredths.
func (m *Mean) text(mean, interval string) string {
	text := fmt.Sprintf(mean, 100*m.Value)
	if m.Low != nil {
		text += fmt.Sprintf(" ("+interval+")", 100**m.Low, 100**m.High)
	}
	return text
}

// Text returns the results as text.
func (r *Results) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Experiment %s: %s\n", r.Name, r.headline())
	for _, t := range r.tables() {
		rows := append([][]string{t.Head}, t.Rows...)
		widths := make([]int, len(t.Head))
		for _, row := range rows {
			for i, text := range row {
				widths[i] = max(widths[i], len(text))
			}
		}
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(t.Caption))
		for _, row := range rows {
			line := ""
			for i, text := range row {
				line += fmt.Sprintf("%-*s  ", widths[i], text)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		if t.Note != "" {
			fmt.Fprintf(&b, "\n%s\n", t.Note)
		}
	}
	return b.String()
}

// Markdown returns the results as Markdown.
func (r *Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Experiment %s\n\n%s.\n", markdown.Replace(r.Name), r.headline())
	if r.About != "" { // the author of the file has written it for a document
		fmt.Fprintf(&b, "\n%s\n", r.About)
	}
	for _, t := range append(r.tables(), r.configurations(), r.runs()) {
		fmt.Fprintf(&b, "\n## %s\n\n", t.Caption)
		for i, row := range append([][]string{t.Head, slices.Repeat([]string{"---"}, len(t.Head))}, t.Rows...) {
			for _, text := range row {
				if i != 1 {
					text = markdown.Replace(text)
				}
				fmt.Fprintf(&b, "| %s ", text)
			}
			b.WriteString("|\n")
		}
		if t.Note != "" {
			fmt.Fprintf(&b, "\n%s\n", t.Note)
		}
	}
	return b.String()
}

// markdown escapes a text in a cell of a table.
var markdown = strings.NewReplacer("|", "\\|", "<", "&lt;", "&", "&amp;", "\n", " ", "\r", " ", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "\\", "\\\\")

// page returns the results as a page with charts.
func (r *Results) page() *dashboard.Overlay {
	o := &dashboard.Overlay{Title: r.Name, Headline: r.headline(), Tables: append(r.tables(), r.runs(), r.configurations())}
	for i := range r.Arms {
		if arm := &r.Arms[i]; arm.Name != beforeTraining {
			o.Lines = append(o.Lines, dashboard.OverlayLine{Name: arm.Name, Runs: arm.states})
		}
	}
	return o
}

// runs returns the table of the completed runs.
func (r *Results) runs() dashboard.OverlayTable {
	t := dashboard.OverlayTable{Caption: "Runs", Head: []string{"run", "seed", "steps", "rollout tokens", "seconds", "kept tests", "per second"}}
	for i := range r.Arms {
		for _, run := range r.Arms[i].Runs {
			kept, rate := "", ""
			if run.Kept > 0 {
				kept, rate = english.Sprint(run.Kept), fmt.Sprintf("%.0f", float64(run.Kept)/run.Seconds)
			}
			t.Rows = append(t.Rows, []string{run.Name, strconv.FormatUint(run.Seed, 10), strconv.Itoa(run.Steps), english.Sprint(run.Tokens), fmt.Sprintf("%.0f", run.Seconds), kept, rate})
		}
	}
	return t
}

// configurations returns the table of the arms.
func (r *Results) configurations() dashboard.OverlayTable {
	t := dashboard.OverlayTable{Caption: "Configurations", Head: []string{"configuration", "preset", "settings"}}
	for _, arm := range r.matrix.Arms {
		var all []string
		for _, s := range arm.Settings {
			all = append(all, s.Key+": "+s.Value)
		}
		if of := arm.Tests; of.Of != "" {
			all = append(all, strings.TrimSpace(testsOfKey+": "+of.Of+" "+of.Step))
		}
		t.Rows = append(t.Rows, []string{arm.Name, arm.Preset, strings.Join(all, ", ")})
	}
	return t
}
