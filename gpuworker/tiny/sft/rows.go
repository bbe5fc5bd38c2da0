package sft

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"strings"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

// maxRowBytes limits a line of training data.
const maxRowBytes = 16 << 20

// row is one line of training data: messages and the response to train on.
type row struct {
	file     string
	line     int
	messages []gpuworker.Message
	response string
}

func (r row) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", r.file, r.line, fmt.Errorf(format, args...))
}

// readRows reads JSONL files. Errors name file and line.
func readRows(files []string) ([]row, error) {
	var rows []row
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		got, err := parseRows(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

func parseRows(name string, r io.Reader) ([]row, error) {
	var rows []row
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRowBytes)
	at := row{file: name}
	for lines.Scan() {
		at.line++
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		parsed, err := at.parse(lines.Bytes())
		if err != nil {
			return nil, err
		}
		rows = append(rows, parsed)
	}
	if err := lines.Err(); err != nil {
		at.line++
		return nil, at.errorf("%w", err)
	}
	return rows, nil
}

func (r row) parse(line []byte) (row, error) {
	var fields struct {
		Prompt   *string `json:"prompt"`
		Response *string `json:"response"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return row{}, r.errorf("%w", err)
	}
	switch n := len(fields.Messages); {
	case n > 0 && (fields.Prompt != nil || fields.Response != nil):
		return row{}, r.errorf("both messages and prompt or response")
	case n > 0:
		for _, m := range fields.Messages {
			r.messages = append(r.messages, gpuworker.Message{Role: m.Role, Content: m.Content})
		}
		last := r.messages[n-1]
		if last.Role != "assistant" || n < 2 {
			return row{}, r.errorf("messages do not end with a message of the assistant after another message")
		}
		r.messages, r.response = r.messages[:n-1], last.Content
	case fields.Prompt == nil || fields.Response == nil:
		return row{}, r.errorf("neither prompt and response nor messages")
	default:
		r.messages, r.response = []gpuworker.Message{{Role: "user", Content: *fields.Prompt}}, *fields.Response
	}
	return r, nil
}

// rowTexts yields the texts of the rows in the pieces that the chat format encodes.
func rowTexts(rows []row) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range rows {
			for _, m := range r.messages {
				if !yield(m.Role + "\n" + m.Content) {
					return
				}
			}
			if !yield("assistant\n") || !yield(r.response) {
				return
			}
		}
	}
}

// encodeRows encodes rows as sequences with the end token.
func encodeRows(e *tiny.Engine, rows []row) ([]gpuworker.Sequence, error) {
	positions := e.Config().Positions
	out := make([]gpuworker.Sequence, len(rows))
	for i, r := range rows {
		prompt, err := e.EncodePrompt(r.messages)
		if err != nil {
			return nil, r.errorf("%w", err)
		}
		out[i] = gpuworker.Sequence{Prompt: prompt, Tokens: e.EncodeResponse(r.response)}
		if n := len(prompt) + len(out[i].Tokens); n > positions {
			return nil, r.errorf("%d tokens exceed the model's %d positions", n, positions)
		}
	}
	return out, nil
}

// splitHoldout draws the held-out share of the sequences by seed.
func splitHoldout(all []gpuworker.Sequence, share float64, seed uint64) (training, heldOut []gpuworker.Sequence) {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))
	n := int(share * float64(len(all)))
	for i, index := range order {
		if i < n {
			heldOut = append(heldOut, all[index])
		} else {
			training = append(training, all[index])
		}
	}
	return training, heldOut
}

// makeBatches shuffles the sequences for an epoch and divides them into batches
// of at most tokens tokens and at least one sequence. Batches mix lengths: nothing
// is padded, so sorting by length would not save work.
func makeBatches(sequences []gpuworker.Sequence, tokens int, seed uint64, epoch int) [][]gpuworker.Sequence {
	var batches [][]gpuworker.Sequence
	var batch []gpuworker.Sequence
	used := 0
	for _, i := range rand.New(rand.NewPCG(seed, uint64(epoch)+1)).Perm(len(sequences)) {
		n := len(sequences[i].Prompt) + len(sequences[i].Tokens)
		if len(batch) > 0 && used+n > tokens {
			batches = append(batches, batch)
			batch, used = nil, 0
		}
		batch = append(batch, sequences[i])
		used += n
	}
	return append(batches, batch)
}

func countTokens(sequences []gpuworker.Sequence) int {
	n := 0
	for _, s := range sequences {
		n += len(s.Prompt) + len(s.Tokens)
	}
	return n
}
