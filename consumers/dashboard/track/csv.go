package track

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"codea1/consumers/dashboard"
)

// csvSink writes RUN.csv: one line for each row, one column for each figure. A figure
// that was not measured is empty.
type csvSink struct {
	file  *os.File
	lines *csv.Writer
	names []string
}

func openCSV(h *header) (sink, error) {
	f, err := os.Create(filepath.Join(h.dir, h.run+".csv"))
	if err != nil {
		return nil, err
	}
	s := &csvSink{file: f, lines: csv.NewWriter(f)}
	for name := range dashboard.RowFigures() {
		s.names = append(s.names, name)
	}
	return s, s.lines.Write(append([]string{"step", "time"}, s.names...))
}

func (s *csvSink) write(row dashboard.Row) error {
	line := []string{strconv.Itoa(row.Step), row.Time.UTC().Format(time.RFC3339Nano)}
	for _, name := range s.names {
		text := ""
		if v, ok := row.Figures[name]; ok {
			text = strconv.FormatFloat(v, 'g', -1, 64)
		}
		line = append(line, text)
	}
	return s.lines.Write(line)
}

func (s *csvSink) flush() error {
	s.lines.Flush()
	return s.lines.Error()
}

func (s *csvSink) close(string) error { return errors.Join(s.flush(), s.file.Close()) }
