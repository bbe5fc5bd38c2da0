package judging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codea1/events"
)

// webPage is a judge's server that answers, and judges nothing: for some time, or for ever.
type webPage struct {
	until time.Time
	asked atomic.Int64
}

func (*webPage) Name() string { return "page" }

func (w *webPage) Score(_ context.Context, _, code string) (float64, error) {
	w.asked.Add(1)
	if time.Now().Before(w.until) {
		return 0, fmt.Errorf("%w: it begins with <html>", ErrUnjudged)
	}
	if strings.Contains(code, "hostile") {
		return 0, fmt.Errorf("%w: null", ErrUnjudged)
	}
	return float64(len(code)), nil
}

func (w *webPage) Safe(ctx context.Context, question, code string) (bool, error) {
	_, err := w.Score(ctx, question, code)
	return err == nil, err
}

// A server that judges no code at all is waited for, and loses no judgement. It is said
// once. A code that a working server cannot judge is not waited for.
func TestServerThatJudgesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		page := &webPage{until: time.Now().Add(3 * time.Hour)}
		h := &Handler{model: newSteady(page, slog.New(slog.NewTextHandler(&logged, nil)).With("server", "http://page")), config: Config{Model: page}}
		codes := make([]string, 40)
		for i := range codes {
			codes[i] = strings.Repeat("y", i+1)
		}
		codes[7] = "hostile"
		for _, kind := range []events.Judge{events.JudgeScore, events.JudgeVerdict} {
			all := make([]judgement, len(codes))
			for i := range all {
				all[i].parses = true
			}
			if err := h.askModel(t.Context(), kind, "q", codes, all); err != nil {
				t.Fatal(err)
			}
			for i, j := range all {
				if (j.failure != "") != (i == 7) || i != 7 && kind == events.JudgeScore && j.score != float64(len(codes[i])) || i != 7 && kind == events.JudgeVerdict && !j.safe {
					t.Errorf("%s: code %d: %+v", kind, i, j)
				}
			}
		}
		if n := strings.Count(logged.String(), "level=ERROR"); n != 1 || !strings.Contains(logged.String(), "server=http://page") || !strings.Contains(logged.String(), "--judge-server") {
			t.Errorf("logged %d times:\n%s", n, &logged)
		}
		if !time.Now().After(page.until) || page.asked.Load() > 500 {
			t.Errorf("%d requests", page.asked.Load())
		}
	})
}

// A run can be stopped while its judge's server judges nothing.
func TestWaitForAJudgeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := &webPage{until: time.Now().Add(1000 * time.Hour)}
		h := &Handler{model: newSteady(page, slog.New(slog.DiscardHandler)), config: Config{Model: page}}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Hour)
		defer stop()
		if err := h.askModel(ctx, events.JudgeVerdict, "q", []string{"x", "y"}, make([]judgement, 2)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
