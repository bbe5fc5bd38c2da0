package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
)

// ExportCommand is `codea1 replay export`.
type ExportCommand struct {
	runArgument
	selectionFlags
	Table  string `help:"What a row is: events, answers, tests, or golden (problems with the tests the run has generated, to train on)." default:"events" enum:"events,answers,tests,golden"`
	Format string `help:"jsonl or parquet." default:"jsonl" enum:"jsonl,parquet"`
	Out    string `help:"File to write; it appears when it is whole. Without it, standard output." placeholder:"FILE"`
}

// Run writes a table of the run.
func (c *ExportCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	selection, err := c.selection()
	if err != nil {
		return err
	}
	if len(selection.Types) > 0 && c.Table != tableEvents {
		return fmt.Errorf("--type chooses events, and --table %s is made of groups", c.Table)
	}
	l, err := c.open(logger)
	if err != nil {
		return err
	}
	total, _ := l.Last()
	meter := newMeter("exporting", total)
	write := func(out io.Writer) error {
		x := exporter{log: l, selection: selection, format: c.Format, out: out, progress: meter.at}
		return x.export(ctx, c.Table)
	}
	err = writeTo(out, c.Out, write)
	meter.finish()
	return errors.Join(err, l.Close())
}

// writeTo writes to a file, or to out where there is no path.
func writeTo(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return buffered(out, write)
	}
	return writeFile(path, write)
}

func buffered(out io.Writer, write func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(out, 256<<10)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}

// writeFile makes a file that is there whole or not at all. Two commands that
// write the same file do not get in each other's way.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("write %s: %w; want the name of a file", path, syscall.EISDIR)
	}
	partial := fmt.Sprintf("%s.%d.partial", path, os.Getpid())
	file, err := os.Create(partial)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = buffered(file, write)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(partial)))
	}
	return nil
}
