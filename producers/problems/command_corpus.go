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
	Role string `help:"Whose text: code or test." enum:"code,test" required:""`
	Rows int    `help:"How many rows." default:"60000"`
	Seed uint64 `help:"The same seed gives the same rows." default:"1"`
	Out  string `help:"File to write; - is standard output." default:"-"`
	Mix  Mix    `embed:""`
}

// Run writes one JSON object per row.
func (c *CorpusCommand) Run(ctx context.Context, stdout io.Writer) (err error) {
	rows, err := Corpus(c.Role, c.Seed, c.Rows, c.Mix)
	if err != nil {
		return err
	}
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
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := encoder.Encode(row); err != nil {
			return fmt.Errorf("corpus: writing %s: %w", c.Out, err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("corpus: writing %s: %w", c.Out, err)
	}
	return nil
}
