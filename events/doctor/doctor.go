// Package doctor examines what a training needs of a machine: a Finding for each need,
// printed as a table or as JSON.
//
// It owns the findings about the bus and the disk. Those about sandbox, memory and
// engines are in the packages that own these.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"codea1/events/connect"
	"codea1/events/files"
	"codea1/events/machine"
	"codea1/events/natsbus"
)

// ErrMissing says that a training with these settings cannot run here.
var ErrMissing = errors.New("found something missing")

// leastDisk is enough for a run of a few hundred steps.
const leastDisk = 1 << 30

// Finding is the result of one examination. A finding with an error and without
// Needed is a note.
type Finding struct {
	What   string
	Detail string
	Err    error // with the remedy
	Needed bool
}

// word says whether a training can run with the finding.
func (f *Finding) word() string {
	switch {
	case f.Err == nil:
		return "ok"
	case f.Needed:
		return "MISSING"
	}
	return "note"
}

// Print prints findings as a table, or a JSON object for each. It returns ErrMissing if
// something is missing that a training needs.
func Print(out io.Writer, asJSON bool, findings []Finding) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := json.NewEncoder(out)
	missing := 0
	for _, f := range findings {
		detail := f.Detail
		if f.Err != nil {
			detail = strings.ReplaceAll(strings.TrimSpace(f.Err.Error()), "\n", " | ")
		}
		if f.word() == "MISSING" {
			missing++
		}
		if asJSON {
			if err := lines.Encode(map[string]string{"result": strings.ToLower(f.word()), "what": f.What, "detail": detail}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.word(), f.What, detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d examinations %w", missing, len(findings), ErrMissing)
	}
	return nil
}

// Bus examines the bus of a run.
func Bus(ctx context.Context, flags *connect.Flags) Finding {
	f := Finding{What: "bus", Detail: connect.PublicURL(flags.URL), Needed: true}
	if flags.URL == connect.Embedded {
		f.Err = natsbus.CheckPort(0)
	} else {
		f.Err = flags.CheckReachable(ctx)
	}
	return f
}

// Disk examines the file system of the runs directory, or of the nearest directory
// above it that exists.
func Disk(runsDir string) Finding {
	f := Finding{What: "disk", Needed: true}
	dir, err := filepath.Abs(runsDir)
	for err == nil && !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	var free uint64
	if err == nil {
		free, err = files.Free(dir)
	}
	if err == nil && free >= leastDisk {
		err = writable(dir)
	}
	switch {
	case err != nil:
		f.Err = fmt.Errorf("--runs-dir %s: %w; choose a directory on a disk that this user may write to", runsDir, err)
	case free < leastDisk:
		f.Err = fmt.Errorf("%s has %s free, want %s: free some, or choose another disk with --runs-dir", dir, machine.Bytes(free), machine.Bytes(leastDisk))
	default:
		f.Detail = fmt.Sprintf("%s has %s free", dir, machine.Bytes(free))
	}
	return f
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// writable returns an error if no directory can be made in dir.
func writable(dir string) error {
	made, err := os.MkdirTemp(dir, ".codea1-doctor-")
	if err != nil {
		return err
	}
	return os.Remove(made)
}
