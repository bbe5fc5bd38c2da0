package client

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lines returns a logger and the messages that it has logged.
func lines() (*slog.Logger, func() []string) {
	var text strings.Builder
	return slog.New(slog.NewTextHandler(&text, nil)), func() []string {
		var list []string
		for line := range strings.Lines(text.String()) {
			_, after, _ := strings.Cut(line, "msg=")
			message, _, _ := strings.Cut(strings.TrimSpace(after), " ")
			list = append(list, message)
		}
		return list
	}
}

// However many calls wait, the begin and the end of an outage are logged once.
func TestOutagesSaysEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, said := lines()
		o := &Outages{Logger: logger, Lost: "lost", Back: "back"}
		reason := errors.New("refused")
		var quick, first, second, cancelled Wait
		o.Failed(&quick, time.Minute, reason) // a short failure is no outage
		quick.End(true)
		for range 3 {
			for _, w := range []*Wait{&first, &second, &cancelled} {
				o.Failed(w, time.Second, reason)
			}
			time.Sleep(time.Second)
		}
		cancelled.End(false)
		first.End(true)
		first.End(true)
		if got := said(); !slices.Equal(got, []string{"lost"}) {
			t.Errorf("said %q while a call waits", got)
		}
		second.End(true)
		var again Wait
		o.Failed(&again, 0, reason)
		again.End(false) // nobody knows whether the bus is back
		o.Failed(&again, 0, reason)
		again.End(true)
		if got := said(); !slices.Equal(got, []string{"lost", "back", "lost", "lost", "back"}) {
			t.Errorf("said %q", got)
		}
	})
}
