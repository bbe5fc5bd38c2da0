package dashboard

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"codea1/events"
)

// Bounds of the texts and changes that a Book keeps. Its counts have none: they are
// as many as the tests in the Mistake Book.
const (
	maxBookBytes     = 32 << 20
	maxQuestionBytes = 16 << 20
	maxChanges       = 64   // newest changes of a test
	maxVerdicts      = 1024 // executed groups that are not rewarded yet
)

// Book counts the tests of the Mistake Book, and keeps their texts and changes as
// far as the bounds allow.
type Book struct {
	Entered  int // tests that entered it; a test that enters again counts again
	Left     int // tests that left it
	Unlisted int // tests without a text, because of the bounds

	counts    map[fingerprint]int64
	tests     map[fingerprint]*bookTest
	bytes     int
	gone      []fingerprint // tests with a text that left the book, oldest first
	questions map[string]string
	asked     int // bytes of the questions
	verdicts  map[string]verdicts
	order     []string // groups in verdicts, oldest first
}

// fingerprint identifies a test. The probability that two of a billion tests
// have the same one is about 10^-21.
type fingerprint [16]byte

// verdicts are the answers of a group that failed or passed a test, as bits of the
// first 64 answers.
type verdicts map[fingerprint]uint64

// bookTest is a test that is or was in the book.
type bookTest struct {
	Problem  string       `json:"problem"`
	Question string       `json:"question"`
	Call     string       `json:"call"`
	Expected string       `json:"expected"`
	Count    int64        `json:"count"`
	Failed   int64        `json:"failed"` // answers that ever failed it
	Changes  []bookChange `json:"changes"`
}

// bookChange is one change of the count of a test.
type bookChange struct {
	Step    int    `json:"step"`
	Group   string `json:"group"`
	Change  int    `json:"change"`
	Count   int64  `json:"count"`   // after it
	Answers []int  `json:"answers"` // that failed the test or, for a decrement, passed it
}

func newBook() Book {
	return Book{
		counts: map[fingerprint]int64{}, tests: map[fingerprint]*bookTest{}, questions: map[string]string{}, verdicts: map[string]verdicts{},
	}
}

// Size returns the tests in the book.
func (b *Book) Size() int { return len(b.counts) }

// testKey returns the fingerprint of a test. With the lengths, ("ab", "c") and ("a",
// "bc") differ.
func testKey(problem, call, expected string) fingerprint {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s%s%s", len(problem), len(call), problem, call, expected))
	return fingerprint(sum[:16])
}

// posed keeps the question of a problem.
func (b *Book) posed(p *events.ProblemPosed) {
	id := p.Problem.ID
	if _, known := b.questions[id]; !known && b.asked < maxQuestionBytes {
		b.questions[id] = clip(p.Problem.Question)
		b.asked += len(id) + len(b.questions[id]) + textOverhead
	}
}

// executed keeps the verdicts of a group until its rewards.
func (b *Book) executed(group string, p *events.CodeExecuted) {
	if p.Plan.Purpose != events.PurposeTrain {
		return
	}
	v := verdicts{}
	for m := range min(len(p.Answers), 64) {
		a := &p.Answers[m]
		for i, h := range p.Historical {
			if i < len(a.Historical) && a.Historical[i] == events.VerdictPass {
				v[testKey("pass "+p.ProblemID, h.Call, h.Expected)] |= 1 << m
			}
		}
		for n := range a.Suites {
			for i := range a.Suites[n].Tests {
				if t := &a.Suites[n].Tests[i]; t.Status == events.StatusKept && t.Verdict.Failed() {
					v[testKey(p.ProblemID, t.Call, t.Expected)] |= 1 << m
				}
			}
		}
	}
	if len(b.order) >= maxVerdicts {
		b.release(b.order[0])
	}
	b.release(group)
	b.verdicts[group] = v
	b.order = append(b.order, group)
}

// release forgets the verdicts of a group, and returns them.
func (b *Book) release(group string) verdicts {
	v, ok := b.verdicts[group]
	if ok {
		delete(b.verdicts, group)
		b.order = slices.DeleteFunc(b.order, func(g string) bool { return g == group })
	}
	return v
}

// apply folds in the changes of a group. A test enters with its first failure
// and leaves when its count falls to 0 or below.
func (b *Book) apply(group string, step int, problem string, deltas []events.BookDelta) (entered, left int) {
	ran := b.release(group)
	for i := range deltas {
		d := &deltas[i]
		key := testKey(problem, d.Call, d.Expected)
		before, present := b.counts[key]
		after := before + int64(d.Change)
		switch {
		case after > 0:
			b.counts[key] = after
			if !present {
				entered++
			}
		case present:
			delete(b.counts, key)
			left++
		default:
			continue // another group removed the test
		}
		answers := ran[key]
		if d.Change < 0 {
			answers = ran[testKey("pass "+problem, d.Call, d.Expected)]
		}
		b.note(key, problem, d, bookChange{Step: step, Group: group, Change: d.Change, Count: max(0, after), Answers: bits(answers)})
	}
	b.Entered += entered
	b.Left += left
	return entered, left
}

// textOverhead is about what Go takes for a test or a question besides its text.
const textOverhead = 160

// note adds a change to a test with a text.
func (b *Book) note(key fingerprint, problem string, d *events.BookDelta, change bookChange) {
	t := b.tests[key]
	if t == nil {
		size := len(d.Call) + len(d.Expected) + textOverhead
		for b.bytes+size > maxBookBytes && len(b.gone) > 0 {
			b.forget(b.gone[0])
		}
		if b.bytes+size > maxBookBytes {
			b.Unlisted++
			return
		}
		t = &bookTest{Problem: problem, Question: b.questions[problem], Call: d.Call, Expected: d.Expected}
		b.tests[key] = t
		b.bytes += size
	}
	if len(t.Changes) == maxChanges {
		t.Changes = slices.Delete(t.Changes, 0, 1)
	} else {
		b.bytes += textOverhead
	}
	t.Changes = append(t.Changes, change)
	t.Failed += int64(max(0, d.Change))
	if t.Count > 0 && change.Count == 0 {
		b.gone = append(b.gone, key)
	} else if t.Count == 0 && len(t.Changes) > 1 {
		b.gone = slices.DeleteFunc(b.gone, func(k fingerprint) bool { return k == key })
	}
	t.Count = change.Count
}

// forget removes the text of a test that left the book.
func (b *Book) forget(key fingerprint) {
	t := b.tests[key]
	b.bytes -= len(t.Call) + len(t.Expected) + textOverhead*(1+len(t.Changes))
	delete(b.tests, key)
	b.gone = slices.DeleteFunc(b.gone, func(k fingerprint) bool { return k == key })
}

// bits returns the numbers of the bits that are set.
func bits(of uint64) []int {
	set := []int{}
	for i := range 64 {
		if of&(1<<i) != 0 {
			set = append(set, i)
		}
	}
	return set
}

// bookQuery selects tests.
type bookQuery struct {
	text    string // in a question, call, value or problem ID; any case
	problem string // empty for all
	sort    string // count, failed or recent
	most    int
}

// bookView is the answer to a bookQuery.
type bookView struct {
	Tests    []bookTest     `json:"tests"`
	Matches  int            `json:"matches"` // with those that are not among Tests
	Size     int            `json:"size"`
	Unlisted int            `json:"unlisted"`
	Problems []problemCount `json:"problems"` // with the most failures, of all tests
}

// problemCount sums the tests of a problem.
type problemCount struct {
	Problem  string `json:"problem"`
	Question string `json:"question"`
	Tests    int    `json:"tests"` // in the book
	Failed   int64  `json:"failed"`
}

// topProblems is the number of problems in a bookView.
const topProblems = 12

// find returns the tests that a query selects. The result shares no memory with
// the book.
func (b *Book) find(q bookQuery) bookView {
	text := strings.ToLower(q.text)
	var found []*bookTest
	problems := map[string]*problemCount{}
	for _, t := range b.tests {
		p := problems[t.Problem]
		if p == nil {
			p = &problemCount{Problem: t.Problem, Question: t.Question}
			problems[t.Problem] = p
		}
		p.Failed += t.Failed
		if t.Count > 0 {
			p.Tests++
		}
		if q.problem != "" && t.Problem != q.problem {
			continue
		}
		if text == "" || strings.Contains(strings.ToLower(t.Call), text) || strings.Contains(strings.ToLower(t.Expected), text) ||
			strings.Contains(strings.ToLower(t.Problem), text) || strings.Contains(strings.ToLower(t.Question), text) {
			found = append(found, t)
		}
	}
	rank := func(t *bookTest) int64 {
		switch q.sort {
		case "failed":
			return t.Failed
		case "recent":
			return int64(t.Changes[len(t.Changes)-1].Step)
		}
		return t.Count
	}
	slices.SortFunc(found, func(x, y *bookTest) int {
		return cmp.Or(cmp.Compare(rank(y), rank(x)), cmp.Compare(y.Failed, x.Failed), strings.Compare(x.Problem, y.Problem),
			strings.Compare(x.Call, y.Call), strings.Compare(x.Expected, y.Expected))
	})
	view := bookView{Tests: []bookTest{}, Matches: len(found), Size: b.Size(), Unlisted: b.Unlisted, Problems: []problemCount{}}
	for _, t := range found[:min(len(found), q.most)] {
		shown := *t
		shown.Changes = slices.Clone(t.Changes)
		shown.Question, shown.Call, shown.Expected = brief(t.Question), brief(t.Call), brief(t.Expected)
		view.Tests = append(view.Tests, shown)
	}
	for _, p := range problems {
		view.Problems = append(view.Problems, problemCount{p.Problem, brief(p.Question), p.Tests, p.Failed})
	}
	slices.SortFunc(view.Problems, func(x, y problemCount) int {
		return cmp.Or(cmp.Compare(y.Failed, x.Failed), strings.Compare(x.Problem, y.Problem))
	})
	view.Problems = view.Problems[:min(len(view.Problems), topProblems)]
	return view
}
