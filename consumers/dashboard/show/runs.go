package show

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/rundir"
)

// OtherRuns implements dashboard.OtherRuns with the logs in a directory of runs.
type OtherRuns struct {
	Host    Host
	RunsDir string
}

// Runs implements dashboard.OtherRuns.
func (o OtherRuns) Runs() ([]string, error) {
	entries, err := os.ReadDir(o.RunsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	began := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		name := e.Name()
		info, err := os.Stat(rundir.Config(filepath.Join(o.RunsDir, name)))
		if err != nil || !o.Host.HasLog(filepath.Join(o.RunsDir, name)) || events.ValidName(name) != nil {
			continue
		}
		names, began[name] = append(names, name), info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(began[b].Compare(began[a]), strings.Compare(a, b)) })
	return names, nil
}

// Open implements dashboard.OtherRuns.
func (o OtherRuns) Open(_ context.Context, run string) (dashboard.Bus, func() error, error) {
	return o.Host.OpenLog(filepath.Join(o.RunsDir, run), slog.New(slog.DiscardHandler))
}
