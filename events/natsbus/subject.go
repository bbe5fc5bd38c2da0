package natsbus

import (
	"slices"
	"strings"

	"codea1/events"
)

const prefix = "codea1"

// streamName returns the stream of a run, which is also a file name on the
// server.
func streamName(run string) string { return prefix + "-" + run }

func runSubjects(run string) string { return prefix + "." + run + ".>" }

// subjectOf returns the subject of an event. No other event is stored on it.
func subjectOf(m *events.Message) string { return eventSubject(m.Run, m.Type, m.Group) }

func eventSubject(run string, t events.Type, group string) string {
	return prefix + "." + run + "." + string(t) + "." + group
}

// place.go has the other subjects of an event. The type of an event has two
// tokens. A run's stream also has messages about some events, with an
// events.DeadLetterID of three tokens:
//
//	codea1.<run>.dead.<set>.<event>.<round>    a dead letter
//	codea1.<run>.retry.<set>.<event>.<round>   its redelivery
const (
	deadToken  = "dead"
	retryToken = "retry"
)

func letterSubject(run, kind, id string) string { return prefix + "." + run + "." + kind + "." + id }

// letterSubjects returns the subjects of a worker set, or of all with "*".
func letterSubjects(run, kind, name string) string {
	return letterSubject(run, kind, name) + ".*.*"
}

// letterID returns the last three tokens of a subject.
func letterID(subject string) string {
	at := len(subject)
	for range 3 {
		at = max(strings.LastIndexByte(subject[:at], '.'), 0)
	}
	return strings.TrimPrefix(subject[at:], ".")
}

// filterOf returns the subjects of the given types, or of all types for none.
func filterOf(run string, types []events.Type) []string {
	if len(types) == 0 {
		return []string{prefix + "." + run + ".*.*.*", prefix + "." + run + "." + againToken + ".*.*.*.*"}
	}
	var subjects []string
	for _, t := range types {
		subjects = append(subjects, prefix+"."+run+"."+string(t)+".*", prefix+"."+run+"."+againToken+"."+string(t)+".*.*")
	}
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

func validNames(names ...string) error {
	for _, n := range names {
		if err := events.ValidName(n); err != nil {
			return err
		}
	}
	return nil
}
