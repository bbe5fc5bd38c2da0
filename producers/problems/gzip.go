package problems

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"codea1/events/files"
)

var errTruncatedGzip = errors.New("the gzip file is truncated; copy or download it again")

// gzipReader reads compressed text. Its errors say what is wrong with the file.
type gzipReader struct{ text *gzip.Reader }

func newGzipReader(file io.Reader) (io.Reader, error) {
	text, err := gzip.NewReader(bufio.NewReader(file))
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errTruncatedGzip
	case err != nil:
		return nil, fmt.Errorf("not gzip: %w", err)
	}
	return gzipReader{text}, nil
}

func (g gzipReader) Read(p []byte) (int, error) {
	n, err := g.text.Read(p)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errTruncatedGzip
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("the gzip file is damaged: %w", err)
	}
	return n, err
}

func isGzip(path string) bool { return strings.HasSuffix(strings.ToLower(path), ".gz") }

// checkGzip reads a whole file and returns why it is not intact.
func checkGzip(path string) error {
	file, err := files.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := newGzipReader(file)
	if err == nil {
		_, err = io.Copy(io.Discard, text)
	}
	return err
}
