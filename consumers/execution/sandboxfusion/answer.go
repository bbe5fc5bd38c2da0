package sandboxfusion

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"codea1/consumers/execution/sandbox"
)

//go:embed remote.py
var remoteProgram string

// This file writes a job as a whole program and reads the output of that program.
// The other side is remote.py, which lists the tags.

const (
	// stdoutBytes is the part of the output that goes to standard output: a server
	// may read it only when the program has ended, and a pipe holds 64 KiB.
	stdoutBytes = 48 << 10
	// answerBytes is the size at which the output ends early and goes on in another
	// request. It and one more frame are within the limits of a server.
	answerBytes = 8 << 20
	// stderrBytes bounds the end of standard error that an error quotes.
	stderrBytes = 2 << 10
)

func newNonce() string { return "codea1-" + rand.Text() }

// request returns a job as a whole program.
func (c *client) request(j sandbox.Job, nonce string) *RunCodeRequest {
	config := c.config
	text, err := json.Marshal(map[string]any{ // the input of remote.py
		"nonce": nonce, "modules": sandbox.JobModules(), "kind": j.Kind, "trusted": j.Flag(), "code": j.Code, "entry": j.Entry, "items": j.Items, "varied": j.Varied,
		"value_bytes": j.ValueBytes, "frame_bytes": sandbox.FrameBytes(j.ValueBytes), "each": j.Each.Seconds(), "budget": j.Budget.Seconds(),
		"limits":       map[string]int64{"RLIMIT_AS": config.MemoryBytes, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": config.FileBytes},
		"stdout_bytes": stdoutBytes, "most_bytes": answerBytes, "file_name": nonce,
	})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return &RunCodeRequest{
		Code:     remoteProgram + "\n\nmain(\"" + base64.StdEncoding.EncodeToString(text) + "\")\n",
		Language: languagePython, CompileTimeout: startSlack.Seconds(), RunTimeout: (j.Budget + startSlack).Seconds(),
		MemoryLimitMB: config.MemoryBytes >> 20, Files: map[string]*string{}, FetchFiles: []string{nonce},
	}
}

// serverAnswer is the result of a job in a server's reply.
type serverAnswer struct {
	sandbox.Session
	ran    time.Duration
	more   bool   // the output got too long for the rest of the items
	stderr string // the end of the program's standard error
}

// readServerAnswer reads a reply. With errNoEnd it also returns the part of the
// output that came.
func readServerAnswer(j sandbox.Job, nonce string, text []byte) (serverAnswer, error) {
	var a serverAnswer
	var response RunCodeResponse
	if err := json.Unmarshal(text, &response); err != nil {
		return a, fmt.Errorf("the reply is no JSON of POST /run_code: %w", err)
	}
	run := response.RunResult
	if run == nil || response.Status == statusSandboxError || run.Status == resultError {
		return a, fmt.Errorf("the server says %s: %s", response.Status, sandbox.Clip(response.Message))
	}
	a.stderr = strings.TrimSpace(run.Stderr[max(0, len(run.Stderr)-stderrBytes):])
	a.ran = time.Duration(run.ExecutionTime * float64(time.Second))
	lines := run.Stdout
	if spilled, err := base64.StdEncoding.DecodeString(response.Files[nonce]); err == nil {
		lines += "\n" + string(spilled)
	}
	if err := a.read(j, nonce, lines); err != nil {
		return a, fmt.Errorf("%w (%s, %s): %w", errNoEnd, response.Status, run.Status, err)
	}
	return a, nil
}

// read reads the lines of the output up to its end.
func (a *serverAnswer) read(j sandbox.Job, nonce, text string) error {
	begun, loaded := false, false
	for line := range strings.Lines(text) {
		rest, ours := strings.CutPrefix(line, nonce+" ")
		if !ours {
			continue
		}
		var letter, detail string
		var seconds float64
		said := []any{&letter, &detail, &seconds}
		if err := json.Unmarshal([]byte(rest), &said); err != nil || len(letter) != 1 || len(detail) > sandbox.FrameBytes(j.ValueBytes) {
			return errors.New("a line is cut off or too long")
		}
		tag, took := letter[0], min(max(0, time.Duration(seconds*float64(time.Second))), j.Each)
		switch {
		case !begun:
			if tag != sandbox.TagBegun {
				return errors.New("the first line does not begin the output")
			}
			begun = true
		case tag == 'E':
			a.more = detail == "more"
			return nil
		case !loaded:
			loaded, a.LoadTook = true, took
			a.load(tag, detail, j.Each)
		case len(a.Replies) == len(j.Items):
			return errors.New("there are more lines than the job has items")
		default:
			r := itemReply(tag, detail)
			r.Took = took
			a.Add(&j, r)
		}
	}
	return errors.New("a line is missing")
}

func (a *serverAnswer) load(tag byte, detail string, each time.Duration) {
	switch tag {
	case sandbox.TagLoaded:
		a.Loads = true
	case sandbox.TagUnloadable:
		a.LoadError = sandbox.Clip(detail)
	case 'O':
		a.LoadError = fmt.Sprintf("still loading after %v", each)
	default:
		a.LoadError = sandbox.Clip(detail) + " while loading"
	}
}

func itemReply(tag byte, detail string) sandbox.Reply {
	switch tag {
	case 'O':
		return sandbox.Reply{Tag: sandbox.TagOvertime}
	case 'M':
		return sandbox.Reply{Tag: sandbox.TagMissing, Text: sandbox.Clip(detail)}
	}
	return sandbox.Reply{Tag: tag, Text: detail}
}
