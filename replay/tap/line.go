package tap

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"codea1/events"
)

// Bounds of the part of a text that a line for people shows, in bytes of the text.
const (
	maxField     = 120
	maxTextLine  = 240
	maxTextLines = 60
)

// lines makes lines of events. The bytes of a line are valid until the next one.
type lines struct {
	json, text bool
	buffer     []byte
}

func (l *lines) line(e *events.Event, at events.Position) []byte {
	if l.json {
		l.buffer = appendJSON(l.buffer[:0], e, at)
		return l.buffer
	}
	f := factsOf(e)
	b := e.Time.Local().AppendFormat(l.buffer[:0], "15:04:05.000 ")
	b = pad(append(b, e.Type...), len("15:04:05.000 ")+16)
	at0 := len(b)
	b = pad(appendHarmless(b, e.Group, maxField), at0+15)
	b = f.append(b)
	b = appendDetails(b, e)
	b = append(b, '\n')
	if l.text {
		b = appendTexts(b, e.Payload)
	}
	l.buffer = b
	return b
}

// pad appends spaces until b has a length, and one at least.
func pad(b []byte, length int) []byte {
	for b = append(b, ' '); len(b) < length; {
		b = append(b, ' ')
	}
	return b
}

// append appends the facts that the event has.
func (f *facts) append(b []byte) []byte {
	if f.role != "" {
		b = append(append(append(b, ' '), f.role...), " v"...)
		b = strconv.AppendInt(b, int64(f.version), 10)
	}
	if f.step > 0 {
		b = strconv.AppendInt(append(b, " step "...), int64(f.step), 10)
	}
	if f.problem != "" {
		b = appendHarmless(append(b, " problem "...), f.problem, maxField)
	}
	for _, x := range []struct {
		name  string
		value float64
	}{{" pass ", f.passRate}, {" reward ", f.reward}, {" test reward ", f.testReward}} {
		if !math.IsNaN(x.value) {
			b = strconv.AppendFloat(append(b, x.name...), x.value, 'f', 3, 64)
		}
	}
	return b
}

// appendDetails appends the fields that only events of one type have.
func appendDetails(b []byte, e *events.Event) []byte {
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		return fmt.Appendf(b, " attempt %d, %d steps, %d problems, build %s", p.Attempt, p.Steps, p.Problems, harmless(p.Build))
	case *events.ProblemPosed:
		return fmt.Appendf(b, " %s, %d historical tests", p.Plan.Purpose, len(p.Historical))
	case *events.CodeSampled:
		tokens := 0
		for i := range p.Answers {
			tokens += len(p.Answers[i].Tokens)
		}
		return fmt.Appendf(b, " %d answers, %d tokens", len(p.Answers), tokens)
	case *events.TestsSampled:
		suites, tokens := 0, 0
		for m := range p.Suites {
			suites += len(p.Suites[m])
			for n := range p.Suites[m] {
				tokens += len(p.Suites[m][n].Tokens)
			}
		}
		return fmt.Appendf(b, " %d suites, %d tokens", suites, tokens)
	case *events.CodeExecuted:
		var kept, wrong, discarded, lost int
		for m := range p.Answers {
			if p.Answers[m].Failure != "" {
				lost++
			}
			for n := range p.Answers[m].Suites {
				k, w, d := p.Answers[m].Suites[n].Counts()
				kept, wrong, discarded = kept+k, wrong+w, discarded+d
			}
		}
		b = fmt.Appendf(b, " tests: %d kept, %d wrong as stated, %d discarded", kept, wrong, discarded)
		if lost > 0 {
			b = fmt.Appendf(b, "; %d answers lost to the infrastructure", lost)
		}
	case *events.GroupRewarded:
		if len(p.Deltas) > 0 {
			return fmt.Appendf(b, " book %d changes", len(p.Deltas))
		}
	case *events.GroupDropped:
		return fmt.Appendf(b, " dropped by %s: %s %s", harmless(p.Stage), harmless(string(p.Reason)), harmless(p.Detail))
	case *events.PolicyUpdated:
		m := &p.Metrics
		return fmt.Appendf(b, " loss %.5f KL %.5f entropy %.4f, %d sequences, %.1f s", m.Loss, m.KL, m.Entropy, m.Sequences, m.Seconds)
	case *events.EvalScored:
		return fmt.Appendf(b, " %s, %d of %d tests right, defects found by %d of %d suites", harmless(p.Plan.Tag), p.Right, p.Stated, p.Found, p.Defective)
	case *events.StageHeartbeat:
		return fmt.Appendf(b, " %s handled %d, failed %d, in flight %d, busy %.0f%%", harmless(p.Stage), p.Handled, p.Failed, p.InFlight, 100*p.Busy)
	case *events.RunFinished:
		return fmt.Appendf(b, " attempt %d %s", p.Attempt, p.Reason)
	}
	return b
}

// appendTexts appends the texts of an event, indented and bounded.
func appendTexts(b []byte, payload events.Payload) []byte {
	text := func(title, s string) {
		b = append(append(append(b, "  "...), title...), '\n')
		n := 0
		for line := range strings.Lines(s) {
			if n++; n > maxTextLines {
				b = append(b, "    | ...\n"...)
				return
			}
			b = append(appendHarmless(append(b, "    | "...), strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "), maxTextLine), '\n')
		}
	}
	switch p := payload.(type) {
	case *events.ProblemPosed:
		text("question", p.Problem.Question)
		text("ground truth", p.Problem.Solution)
	case *events.CodeSampled:
		for i := range p.Answers {
			text(fmt.Sprint("answer ", i), p.Answers[i].Text)
		}
	case *events.TestsSampled:
		for m := range p.Suites {
			for n := range p.Suites[m] {
				text(fmt.Sprintf("suite %d of answer %d", n, m), p.Suites[m][n].Text)
			}
		}
	case *events.CodeExecuted:
		for m := range p.Answers {
			if !p.Answers[m].Loads {
				text(fmt.Sprintf("answer %d does not load", m), p.Answers[m].LoadError)
			}
		}
	}
	return b
}

// harmless returns a text of a model or a publisher that a terminal shows and does
// not obey, cut after most bytes.
func harmless(s string) string { return string(appendHarmless(nil, s, maxField)) }

func appendHarmless(b []byte, s string, most int) []byte {
	cut := len(s) > most
	if cut {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	if plain(s) {
		b = append(b, s...)
	} else {
		from := len(b)
		b = strconv.AppendQuoteToGraphic(b, s)
		b = append(b[:from], b[from+1:len(b)-1]...) // without the quotes
	}
	if cut {
		b = append(b, "..."...)
	}
	return b
}

// plain reports whether a text has printable ASCII characters only.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
