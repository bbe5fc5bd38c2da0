package replaytest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"codea1/events"
)

// Run is the name of the run of all events here.
const Run = "r1"

// Time is the time of the first event.
var Time = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// Encode returns an event's message, and sets the hash of the event.
func Encode(t testing.TB, e *events.Event) events.Message {
	t.Helper()
	m, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Plan returns the plan of group number slot.
func Plan(slot int) events.Plan {
	return events.Plan{Purpose: events.PurposeTrain, Step: 1 + slot/1000, Slot: slot % 1000, Groups: 1000, Answers: 1, Suites: 1, Tests: 1, Temperature: 1}
}

// Posed poses group number slot; different questions give different payloads.
func Posed(slot int, question string) *events.Event {
	plan := Plan(slot)
	return events.New(Run, plan.GroupID(), events.StageCurriculum, Time.Add(time.Duration(slot)), &events.ProblemPosed{
		Plan:    plan,
		Problem: events.Problem{ID: fmt.Sprintf("p%d", slot%7), Question: question, EntryPoint: "f", Solution: "def f(x): return x"},
	})
}

// Sampled returns the sampled answer to a posed problem.
func Sampled(cause *events.Event, text string) *events.Event {
	p := cause.Payload.(*events.ProblemPosed)
	return events.Caused(cause, "code-0", Time, &events.CodeSampled{
		Posed: *p, Prompt: events.Int32s{1, 2},
		Answers: []events.Completion{{Text: text, Tokens: events.Int32s{3}, LogProbs: events.Float32s{-0.5}, Finish: events.FinishStop}},
	})
}

// Rewarded ends a group with changes of the Mistake Book.
func Rewarded(cause *events.Event, deltas ...events.BookDelta) *events.Event {
	plan, _ := events.PlanOf(cause.Payload)
	return events.Caused(cause, "rewards-0", Time, &events.GroupRewarded{
		Plan: plan, ProblemID: fmt.Sprintf("p%d", plan.Slot%7), Recipe: "a1", Alpha: 0.5,
		Code: []events.AnswerReward{{Reward: 1, Loads: true}}, Test: [][]events.SuiteReward{{{Reward: 0.5}}}, Deltas: deltas,
	})
}

// Delta returns a change of the count of a test.
func Delta(call string, change int) events.BookDelta {
	return events.BookDelta{Call: call, Expected: "0", Change: change}
}

// Group returns a whole group: posed, sampled and rewarded. The changes of the Mistake
// Book depend on its slot.
func Group(t testing.TB, slot int) []events.Message {
	p := Posed(slot, "What is f?")
	messages := []events.Message{Encode(t, p)}
	s := Sampled(p, strings.Repeat("return x\n", slot%300))
	messages = append(messages, Encode(t, s))
	r := Rewarded(s, Delta(fmt.Sprintf("f(%d)", slot%3), -1), Delta(fmt.Sprintf("f(%d)", slot%5), 1), Delta(fmt.Sprintf("f(%d)", slot%4), 2))
	return append(messages, Encode(t, r))
}

// Noise returns text that compresses to no less than half.
func Noise(seed, length int) string {
	r := rand.New(rand.NewPCG(1, uint64(seed)))
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(' ' + r.IntN(94))
	}
	return string(b)
}
