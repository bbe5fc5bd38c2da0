package dashboard

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"codea1/events"
)

//go:embed report
var reportFiles embed.FS

var reportTemplate = template.Must(template.New("report.html").
	Funcs(template.FuncMap{"thousands": thousands[int64], "short": short}).ParseFS(reportFiles, "report/report.html"))

// SaveReport writes the report of a run to a file. It replaces an old file in one
// step.
func SaveReport(path string, s *State) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("report %s: %w", path, err), os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(writeBuffered(file, s), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func writeBuffered(w io.Writer, s *State) error {
	b := bufio.NewWriter(w)
	if err := WriteReport(b, s); err != nil {
		return err
	}
	return b.Flush()
}

// WriteReport writes the results of a run as one HTML file: tables, charts and
// examples of answers that fail a new test. A browser opens it from disk without
// a network: scripts, styles and data are in the file, and its content security
// policy allows nothing else. Texts of the run cannot become HTML.
func WriteReport(w io.Writer, s *State) error {
	styles, err := readAll(pageFiles, "page/uPlot.min.css", "page/style.css")
	if err != nil {
		return err
	}
	own, err := readAll(reportFiles, "report/report.css", "report/report.js")
	if err != nil {
		return err
	}
	scripts, err := readAll(pageFiles, "page/uPlot.iife.min.js", "page/charts.js")
	if err != nil {
		return err
	}
	styles, scripts = append(styles, own[0]), append(scripts, own[1])
	r := report{
		State:    s,
		Policy:   contentPolicy(scripts, styles),
		Headline: headline(s),
		Facts:    facts(s),
		Compared: compare(s.Before(), s.After()),
		Missing:  incomplete(s.Before(), s.After()),
		Charts:   reportCharts(s),
		Data:     reportSeries(s),
	}
	if s.Series.stride > 1 {
		r.Stride = fmt.Sprintf("Each point of a chart holds %d steps.", s.Series.stride)
	}
	for _, css := range styles {
		r.Styles = append(r.Styles, template.CSS(css))
	}
	for _, js := range scripts {
		r.Scripts = append(r.Scripts, template.JS(js))
	}
	if err := reportTemplate.Execute(w, r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// report holds the values of report.html.
type report struct {
	*State
	Policy   string // content security policy
	Styles   []template.CSS
	Scripts  []template.JS
	Headline string
	Facts    []fact
	Compared []comparison
	Missing  []string
	Charts   []reportChart
	Stride   string // steps per point of the charts; empty for 1
	Data     chartData
}

// NewestDrop returns group, stage and detail of the newest drop for a reason;
// empty if it is not among RecentDrops.
func (r report) NewestDrop(reason events.DropReason) string {
	for _, d := range slices.Backward(r.RecentDrops) {
		if d.Reason == reason {
			return strings.TrimSuffix(fmt.Sprintf("%s in %s: %s", d.Group, d.Stage, d.Detail), ": ")
		}
	}
	return ""
}

type fact struct{ Name, Value string }

type reportChart struct{ ID, Title string }

// reportCharts returns the charts of the report, by their names in charts.js.
func reportCharts(s *State) []reportChart {
	answers := "k"
	if e := s.After(); e != nil {
		answers = strconv.Itoa(e.Answers)
	}
	charts := []reportChart{
		{"reward", "Reward"},
		{"heldout", "Held-out avg@" + answers + " with its 95% interval"},
		{"pass", "Share of tests passed"},
		{"tests", "Tests per suite"},
		{"changes", "Mistake Book: tests added and removed"},
		{"book", "Mistake Book: tests in it"},
		{"entropy", "Entropy, nats per token"},
		{"kl", "KL divergence to the reference"},
		{"grad", "Gradient norm"},
	}
	if s.Dropped > 0 {
		charts = append(charts, reportChart{"dropped", "Groups dropped"})
	}
	return charts
}

// chartData holds the columns of charts.js. Those of updates are as long as
// those of steps.
type chartData struct {
	seriesView
	EntropyCode  []number `json:"entropy_code"`
	EntropyTest  []number `json:"entropy_test"`
	KLCode       []number `json:"kl_code"`
	KLTest       []number `json:"kl_test"`
	GradNormCode []number `json:"grad_norm_code"`
	GradNormTest []number `json:"grad_norm_test"`
	Dropped      []int    `json:"dropped"`

	EvalStep []int    `json:"eval_step"` // steps trained; one per evaluation
	EvalAvg  []number `json:"eval_avg"`
	EvalLow  []number `json:"eval_low"`
	EvalHigh []number `json:"eval_high"`
}

func reportSeries(s *State) chartData {
	data := chartData{
		seriesView:   s.Series.view(),
		EntropyCode:  means(&s.Series, func(p *Point) Mean { return p.CodeUpdate.Entropy }),
		EntropyTest:  means(&s.Series, func(p *Point) Mean { return p.TestUpdate.Entropy }),
		KLCode:       means(&s.Series, func(p *Point) Mean { return p.CodeUpdate.KL }),
		KLTest:       means(&s.Series, func(p *Point) Mean { return p.TestUpdate.KL }),
		GradNormCode: means(&s.Series, func(p *Point) Mean { return p.CodeUpdate.GradNorm }),
		GradNormTest: means(&s.Series, func(p *Point) Mean { return p.TestUpdate.GradNorm }),
		Dropped:      column(&s.Series, func(p *Point) int { return p.Dropped }),
		EvalStep:     []int{},
	}
	for _, e := range s.evals {
		low, high := e.AvgInterval()
		data.EvalStep = append(data.EvalStep, e.Step)
		data.EvalAvg = append(data.EvalAvg, number(e.Avg()))
		data.EvalLow, data.EvalHigh = append(data.EvalLow, number(low)), append(data.EvalHigh, number(high))
	}
	return data
}

func facts(s *State) []fact {
	out := []fact{
		{"Mistake Book", fmt.Sprintf("%s tests", thousands(s.Book.Size()))},
		{"Tests added / removed", thousands(s.Book.Entered) + " / " + thousands(s.Book.Left)},
		{"Groups rewarded", thousands(s.Rewarded)},
		{"Groups dropped", thousands(s.Dropped)},
		{"Events", thousands(s.Total())},
	}
	if s.ProblemSet != "" {
		out = append(out, fact{"Training problems", thousands(s.Problems)})
	}
	if s.Unreadable > 0 {
		out = append(out, fact{"Unreadable events", thousands(s.Unreadable)})
	}
	return out
}

// short writes three digits or, for a small number, 3.7e-5, as the page does.
func short(x float64) string {
	if x == 0 || math.Abs(x) >= 0.001 {
		return fmt.Sprintf("%.3g", x)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', 1, 64), "e-")
	return digits + "e-" + strings.TrimPrefix(exponent, "0")
}

// contentPolicy allows only the given inline scripts and styles, by their hash.
func contentPolicy(scripts, styles []string) string {
	sources := func(texts []string) string {
		var b strings.Builder
		for _, text := range texts {
			sum := sha256.Sum256([]byte(text))
			fmt.Fprintf(&b, " 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:]))
		}
		return b.String()
	}
	return "default-src 'none'; script-src" + sources(scripts) + "; style-src" + sources(styles) + "; base-uri 'none'; form-action 'none'"
}

func readAll(files embed.FS, names ...string) (texts []string, err error) {
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("dashboard: %w", err)
		}
		texts = append(texts, string(data))
	}
	return texts, nil
}
