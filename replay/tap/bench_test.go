package tap

import (
	"syscall"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
)

// BenchmarkLines decodes, filters and prints events of 1 KB: sampled answers, which
// are new to the process each time.
func BenchmarkLines(b *testing.B) {
	var messages []events.Message
	for slot := range eventstest.Groups {
		messages = append(messages, eventstest.Encode(eventstest.CodeSampled(eventstest.Posed("r", 1, slot))))
	}
	for name, c := range map[string]struct {
		command Command
		lines   lines
	}{
		"text":  {},
		"json":  {lines: lines{json: true}},
		"where": {command: Command{Where: `step == 1 && role == "code"`}},
	} {
		b.Run(name, func(b *testing.B) {
			filter, err := c.command.filter()
			if err != nil {
				b.Fatal(err)
			}
			bytes, began := 0, cpuTime(b)
			for i := 0; b.Loop(); i++ {
				m := messages[i%len(messages)]
				e, err := m.Admit()
				if err != nil {
					b.Fatal(err)
				}
				if !filter.matches(e) {
					b.Fatal("not selected")
				}
				bytes += len(c.lines.line(e, "1"))
			}
			b.ReportMetric(float64(b.N)/(cpuTime(b)-began).Seconds(), "events/cpu-s")
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/line")
		})
	}
}

// cpuTime returns the time that the cores have worked for this process, which other
// processes do not change much.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
