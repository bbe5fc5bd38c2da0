package problems

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// CorpusCommand is `codea1 problems corpus`.
type CorpusCommand struct {
	Corpus `embed:""`
	Out    string `help:"File to write; - is standard output." default:"-"`
}

// Run writes one JSON object per row.
func (c *CorpusCommand) Run(ctx context.Context, stdout io.Writer) (err error) {
	out := stdout
	if c.Out != "-" {
		file, err := os.Create(c.Out)
		if err != nil {
			return fmt.Errorf("corpus: %w", err)
		}
		defer func() {
			if closeErr := file.Close(); err == nil && closeErr != nil {
				err = fmt.Errorf("corpus: %w", closeErr)
			}
		}()
		out = file
	}
	buffered := bufio.NewWriter(out)
	encoder := jsonEncoder(buffered)
	if err := c.Each(ctx, func(row Row) error { return encoder.Encode(row) }); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("corpus: writing %s: %w", c.Out, err)
	}
	return nil
}

// jsonEncoder writes text as it is: HTML characters are not escaped.
func jsonEncoder(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder
}
