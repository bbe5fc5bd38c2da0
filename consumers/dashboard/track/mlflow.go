package track

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// mlflow writes the run into a file store of MLflow, mlruns.
type mlflow struct {
	dir  string
	meta map[string]any
	last time.Time
	rows []dashboard.Row // since the last flush
}

// The names of the only experiment in the store.
const (
	mlflowExperiment   = "codea1"
	mlflowExperimentID = "1"
)

// States of a run in MLflow.
const (
	mlflowRunning  = 1
	mlflowFinished = 3
	mlflowKilled   = 5
)

func openMLflow(h *header) (sink, error) {
	root, err := filepath.Abs(filepath.Join(h.dir, "mlruns", mlflowExperimentID))
	if err != nil {
		return nil, err
	}
	began := h.began.UnixMilli()
	s := &mlflow{dir: filepath.Join(root, h.id), last: h.began, meta: map[string]any{
		"artifact_uri": "file://" + filepath.Join(root, h.id, "artifacts"), "experiment_id": mlflowExperimentID, "lifecycle_stage": "active",
		"run_id": h.id, "run_uuid": h.id, "run_name": h.run, "user_id": "codea1", "start_time": began, "end_time": nil, "status": mlflowRunning,
		"entry_point_name": "", "source_name": "", "source_type": 4, "source_version": "", "tags": []string{},
	}}
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, err
	}
	for _, part := range []string{"metrics", "params", "tags", "artifacts"} {
		if err := os.MkdirAll(filepath.Join(s.dir, part), 0o755); err != nil {
			return nil, err
		}
	}
	err = writeYAML(filepath.Join(root, "meta.yaml"), map[string]any{
		"artifact_location": "file://" + root, "experiment_id": mlflowExperimentID, "name": mlflowExperiment, "lifecycle_stage": "active",
		"creation_time": began, "last_update_time": began,
	})
	for name, value := range h.config {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, "params", name), []byte(value), 0o644))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, "tags", "mlflow.runName"), []byte(h.run), 0o644))
	return s, errors.Join(err, s.writeMeta())
}

func (s *mlflow) write(row dashboard.Row) error {
	s.rows, s.last = append(s.rows, row), row.Time
	if len(s.rows) < maxUnwritten {
		return nil
	}
	return s.flush()
}

// maxUnwritten bounds the rows that wait for a flush.
const maxUnwritten = 1024

// flush appends to the file of each figure.
func (s *mlflow) flush() error {
	lines := map[string]*strings.Builder{}
	for _, row := range s.rows {
		for name, value := range row.Figures {
			if lines[name] == nil {
				lines[name] = &strings.Builder{}
			}
			fmt.Fprintf(lines[name], "%d %v %d\n", row.Time.UnixMilli(), value, row.Step)
		}
	}
	s.rows = nil
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if err := appendTo(filepath.Join(s.dir, "metrics", filepath.FromSlash(name)), lines[name].String()); err != nil {
			return err
		}
	}
	return nil
}

func (s *mlflow) close(finished string) error {
	switch finished {
	case "":
		return s.flush()
	case events.RunCompleted:
		s.meta["status"] = mlflowFinished
	default:
		s.meta["status"] = mlflowKilled
	}
	s.meta["end_time"] = s.last.UnixMilli()
	return errors.Join(s.flush(), s.writeMeta())
}

func (s *mlflow) writeMeta() error { return writeYAML(filepath.Join(s.dir, "meta.yaml"), s.meta) }

func writeYAML(path string, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

func appendTo(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
