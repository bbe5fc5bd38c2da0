package problems

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"codea1/events"
)

// Trace is a golden test's call on the ground truth, as Python texts.
type Trace struct {
	Call      string
	Arguments string              // as a tuple; empty for a call with a named argument
	Value     string              // that the call returned
	Lines     []int               // by step: the line, from 1, of the next statement of the entry point
	States    []map[string]string // by step: the value and the type of each variable, as a tuple; nil if unknown
}

const (
	stepQuestions = 2 // of each kind about the steps of a call
	inputChoices  = 6 // calls that an input is chosen from
)

// predictions are the lines of a predict problem and the questions about them.
type predictions struct {
	questions []string
	accepted  []events.Prediction
}

func (p *predictions) ask(kind events.Predicted, accepted []string, format string, args ...any) {
	p.questions = append(p.questions, fmt.Sprintf(format, args...))
	p.accepted = append(p.accepted, events.Prediction{Kind: kind, Accepted: accepted})
}

// Predictions returns predict problems about the ground truth of a problem: one for each of at
// most so many of its traced calls, and one that asks for an input if the calls return
// different values. The same seed gives the same problems.
func (p *Problem) Predictions(traces []Trace, calls int, seed uint64) []Problem {
	if len(p.Predict) > 0 || strings.ContainsAny(p.Solution, "\r\f") { // lines of Python, and of an editor
		return nil
	}
	hash := sha256.Sum256([]byte(p.ID))
	random := rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64(hash[:8])))
	source := strings.Split(strings.TrimRight(p.Solution, "\n"), "\n")
	traces = slices.DeleteFunc(slices.Clone(traces), func(t Trace) bool { // of a program that changed its tracer
		return len(t.States) != len(t.Lines) || slices.ContainsFunc(t.Lines, func(line int) bool { return line < 1 || line > len(source) })
	})
	random.Shuffle(len(traces), func(i, j int) { traces[i], traces[j] = traces[j], traces[i] })
	var made []Problem
	add := func(name, call string, asked *predictions) {
		q := Problem{
			ID: p.ID + "/" + name, Source: p.Source, Difficulty: p.Difficulty, EntryPoint: p.EntryPoint, Solution: p.Solution,
			Question: asked.text(source, call), Predict: asked.accepted,
		}
		for _, t := range traces { // problems check runs them
			if t.Call == call || call == "" {
				q.Tests = append(q.Tests, "assert "+t.Call+" == "+t.Value)
			}
		}
		if q.Validate() == nil {
			made = append(made, q)
		}
	}
	for i := range traces[:min(calls, len(traces))] {
		t, asked := &traces[i], new(predictions)
		asked.ask(events.PredictOutput, []string{t.Value}, "Which value does the call return?")
		t.askNext(asked, random, source)
		t.askState(asked, random)
		add(fmt.Sprintf("call%d", i+1), t.Call, asked)
	}
	if asked := askInput(p.EntryPoint, traces); asked != nil && calls > 0 {
		add("input", "", asked)
	}
	return made
}

// text writes the question of a predict problem, which is its whole prompt.
func (p *predictions) text(source []string, call string) string {
	var b strings.Builder
	b.WriteString("Read this Python program. The numbers are those of its lines.\n\n```\n")
	for i, line := range source {
		fmt.Fprintf(&b, "%*d | %s\n", len(strconv.Itoa(len(source))), i+1, line)
	}
	b.WriteString("```\n\n")
	if call != "" {
		fmt.Fprintf(&b, "The program is loaded, and then `%s` is called. Lines run as in a debugger that steps through this call and over the calls within it.\n\n", call)
	}
	for i, question := range p.questions {
		fmt.Fprintf(&b, "%d. %s\n", i+1, question)
	}
	fmt.Fprintf(&b, "\nAnswer with one fenced block that opens with ```python and has %d line(s): for each question, in this order, one Python literal and nothing else. "+
		"Only the first such block counts. Reason step by step before the block if that helps you.", len(p.questions))
	return b.String()
}

// askNext asks for the lines that run after others, first of all after those that have
// several successors in this call.
func (t *Trace) askNext(asked *predictions, random *rand.Rand, source []string) {
	after := make(map[int]map[int]bool)
	for i := range t.Lines[:max(0, len(t.Lines)-1)] {
		if after[t.Lines[i]] == nil {
			after[t.Lines[i]] = make(map[int]bool)
		}
		after[t.Lines[i]][t.Lines[i+1]] = true
	}
	var branching, others []int
	for i := range t.Lines[:max(0, len(t.Lines)-1)] {
		switch {
		case t.States[i] == nil:
		case len(after[t.Lines[i]]) > 1:
			branching = append(branching, i)
		default:
			others = append(others, i)
		}
	}
	steps := append(draw(random, branching, stepQuestions), draw(random, others, stepQuestions)...)
	for _, i := range slices.Sorted(slices.Values(steps[:min(stepQuestions, len(steps))])) {
		next := t.Lines[i+1]
		accepted := []string{strconv.Itoa(next)}
		if text := strings.TrimSpace(source[next-1]); unique(source, text) && strconv.CanBackquote(text) {
			accepted = append(accepted, quoted(text))
		}
		asked.ask(events.PredictNext, accepted, "Line %d runs for the %s time. Which line runs after it? Write its number.", t.Lines[i], ordinal(t.count(i)))
	}
}

// askState asks for variables that have just changed.
func (t *Trace) askState(asked *predictions, random *rand.Rand) {
	type changed struct {
		step int
		name string
	}
	var all []changed
	known := map[string]string{} // the last known state
	for i, state := range t.States {
		if state == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(state)) {
			if i > 0 && known[name] != state[name] {
				all = append(all, changed{i, name})
			}
		}
		known = state
	}
	some := draw(random, all, stepQuestions)
	slices.SortFunc(some, func(a, b changed) int { return cmp.Or(cmp.Compare(a.step, b.step), strings.Compare(a.name, b.name)) })
	for _, c := range some {
		asked.ask(events.PredictState, []string{t.States[c.step][c.name]},
			"Right before line %d runs for the %s time, what are the value and the type of `%s`? Write a tuple, such as (1, 'int').", t.Lines[c.step], ordinal(t.count(c.step)), c.name)
	}
}

// askInput asks which of some calls returns a value; nil if all return the same.
func askInput(entry string, traces []Trace) *predictions {
	var choices []Trace
	for _, t := range traces {
		if t.Arguments != "" && len(choices) < inputChoices && !slices.ContainsFunc(choices, func(c Trace) bool { return c.Arguments == t.Arguments }) {
			choices = append(choices, t)
		}
	}
	var list, accepted []string
	for _, t := range choices {
		list = append(list, "`"+t.Arguments+"`")
		if t.Value == choices[0].Value {
			accepted = append(accepted, t.Arguments)
		}
	}
	if len(accepted) == len(choices) {
		return nil
	}
	slices.Sort(list)
	asked := new(predictions)
	asked.ask(events.PredictInput, accepted, "With the arguments of which of these tuples does `%s` return `%s`? Write the tuple. %s", entry, choices[0].Value, strings.Join(list, ", "))
	return asked
}

// count returns how often the line of a step has run, with this step.
func (t *Trace) count(step int) (n int) {
	for _, line := range t.Lines[:step+1] {
		if line == t.Lines[step] {
			n++
		}
	}
	return n
}

// draw returns at most n of some items.
func draw[T any](random *rand.Rand, from []T, n int) []T {
	from = slices.Clone(from)
	random.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:min(n, len(from))]
}

func unique(source []string, text string) bool {
	n := 0
	for _, line := range source {
		if strings.TrimSpace(line) == text {
			n++
		}
	}
	return n == 1
}

// quoted writes a text without control characters as a Python literal.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		suffix = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	return strconv.Itoa(n) + cmp.Or(suffix, "th")
}
