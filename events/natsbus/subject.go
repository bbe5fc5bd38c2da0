package natsbus

import (
	"slices"

	"codea1/events"
)

const prefix = "codea1"

// streamName is also a file name on the server: the stream of a run.
func streamName(run string) string { return prefix + "-" + run }

func runSubjects(run string) string { return prefix + "." + run + ".>" }

// subjectOf is where an event is stored: it alone, once.
func subjectOf(m *events.Message) string {
	return prefix + "." + m.Run + "." + string(m.Type) + "." + m.Group
}

// filterOf returns the subjects that hold the given types; all for none.
func filterOf(run string, types []events.Type) []string {
	if len(types) == 0 {
		return []string{runSubjects(run)}
	}
	subjects := make([]string, len(types))
	for i, t := range types {
		subjects[i] = prefix + "." + run + "." + string(t) + ".*"
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
