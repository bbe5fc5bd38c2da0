package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"codea1/events"
	"codea1/events/rundir"
)

var reportTemplate = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"thousands": thousands, "short": short, "headline": headline, "compare": compare, "incomplete": incomplete,
}).ParseFS(files, "report/report.html"))

// The styles and scripts of a report.
var (
	reportStyles  = texts[template.CSS]("page/uPlot.min.css", "page/style.css", "report/report.css")
	reportScripts = texts[template.JS]("page/uPlot.iife.min.js", "page/charts.js", "report/report.js")
)

// SaveReport writes the report of a run to a file. It replaces an old file in one
// step.
func SaveReport(path string, s *State) error {
	var page bytes.Buffer
	if err := WriteReport(&page, s); err != nil {
		return err
	}
	if err := rundir.WriteFile(path, page.Bytes(), rundir.FileMode); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteReport writes the results of a run as one HTML file: tables, charts and
// examples of answers that fail a new test. A browser opens it from disk without
// a network: scripts, styles and data are in the file, and its content security
// policy allows nothing else. Texts of the run cannot become HTML.
func WriteReport(w io.Writer, s *State) error {
	r := report{State: s, Styles: reportStyles, Scripts: reportScripts, Data: reportSeries(s)}
	if err := reportTemplate.Execute(w, r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// report holds the values of report.html.
type report struct {
	*State
	Styles  []template.CSS
	Scripts []template.JS
	Data    object // columns of charts.js
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

// reportSeries returns the columns of charts.js. Those of updates are as long as
// those of steps; those of evaluations have a row per evaluation.
func reportSeries(s *State) object {
	data := s.Series.view(measures)
	data["dropped"] = column(&s.Series, func(p *Point) int { return p.Dropped })
	steps, avgs, lows, highs := []int{}, []number{}, []number{}, []number{}
	for _, e := range s.evals {
		low, high := e.AvgInterval()
		steps, avgs = append(steps, e.Step), append(avgs, number(e.Avg()))
		lows, highs = append(lows, number(low)), append(highs, number(high))
	}
	data["eval_step"], data["eval_avg"], data["eval_low"], data["eval_high"] = steps, avgs, lows, highs
	return data
}

// short writes three digits or, for a small number, 3.7e-5, as the page does.
func short(x float64) string {
	if x == 0 || math.Abs(x) >= 0.001 {
		return fmt.Sprintf("%.3g", x)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', 1, 64), "e-")
	return digits + "e-" + strings.TrimPrefix(exponent, "0")
}

// Policy returns the content security policy, which allows only the inline
// scripts and styles of the report, by their hash.
func (r report) Policy() string {
	return "default-src 'none'; script-src" + hashes(r.Scripts) + "; style-src" + hashes(r.Styles) + "; base-uri 'none'; form-action 'none'"
}

func hashes[T ~string](texts []T) string {
	var b strings.Builder
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		fmt.Fprintf(&b, " 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:]))
	}
	return b.String()
}

// texts returns the contents of embedded files.
func texts[T ~string](names ...string) (contents []T) {
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the names are constants
		}
		contents = append(contents, T(data))
	}
	return contents
}
