package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// writeTo writes to a file, or to out if path is empty.
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

// writeFile makes a complete file or none. Two commands may write the same file at
// the same time: each has a partial file of its own.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("write %s: %w; give the name of a file", path, syscall.EISDIR)
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
