package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/events"
)

// errNotUnleaked is wrapped for a file of another format.
var errNotUnleaked = errors.New("not a file of UnLeakedTestBench (fields task_id, prompt, code)")

// unleaked is a row of UnLeakedTestBench. Its tests are not used: the suites of a model are
// judged by the program.
type unleaked struct {
	ID       json.RawMessage `json:"task_id"`   // a text or a number
	Function string          `json:"func_name"` // absent: the first one of the program
	Prompt   string          `json:"prompt"`    // describes the function
	Code     string          `json:"code"`
}

// id returns the text or the number; empty for another value.
func (u *unleaked) id() (id string) {
	var number json.Number
	if json.Unmarshal(u.ID, &id) != nil && json.Unmarshal(u.ID, &number) == nil {
		id = number.String()
	}
	return id
}

// UnLeakedTestBench runs its programs with these names. A program that uses numpy or
// pandas has them, too.
const unleakedImports = `import datetime, math, os, random, re, string, traceback, warnings
from typing import Any, Dict, FrozenSet, Generator, Iterable, List, Optional, Sequence, Set, Tuple, Union
`

var (
	firstFunction = regexp.MustCompile(`(?m)^def\s+(\w+)\s*\(`)
	usesNumpy     = regexp.MustCompile(`\b(np|numpy)\.`)
	usesPandas    = regexp.MustCompile(`\b(pd|pandas)\.`)
)

// problem returns the row as a problem. Its question is the description.
func (u *unleaked) problem(source string) (*evalplus.Problem, error) {
	if u.Function == "" {
		if first := firstFunction.FindStringSubmatch(u.Code); first != nil {
			u.Function = first[1]
		}
	}
	if u.Function == "" {
		return nil, fmt.Errorf("task_id %s: field code defines no function, and there is no func_name", u.id())
	}
	imports := unleakedImports
	if usesNumpy.MatchString(u.Code) {
		imports += "import numpy\nimport numpy as np\n"
	}
	if usesPandas.MatchString(u.Code) {
		imports += "import pandas\nimport pandas as pd\n"
	}
	return &evalplus.Problem{
		ID: "ULT/" + u.id(), Source: source, Question: u.Prompt, EntryPoint: u.Function, Solution: imports + u.Code + "\n",
		Tests: []string{"assert callable(" + u.Function + ")"},
	}, nil
}

// maxUnleakedBytes bounds a file, unpacked. That of the authors has some megabytes.
const maxUnleakedBytes = 128 << 20

// readUnleaked returns the problems of a file of UnLeakedTestBench, and notes their
// programs without the imports. Its authors write one JSON array; a file may also have a row a line.
// The first row decides whether the file is one. The error names the file and the line.
func (m *Maker) readUnleaked(path, source string) (set []*evalplus.Problem, err error) {
	if m.programs == nil {
		m.programs = map[string]string{}
	}
	err = grading.ReadFile(path, func(in io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(in, maxUnleakedBytes+1))
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case len(text) > maxUnleakedBytes:
			return fmt.Errorf("%w: %s has more than %d bytes", errNotUnleaked, path, maxUnleakedBytes)
		}
		err = eachUnleaked(text, func(u *unleaked) error {
			p, err := u.problem(source)
			if err != nil {
				return err
			}
			if m.programs[p.ID] != "" {
				return fmt.Errorf("task_id %s occurs twice", u.id())
			}
			set, m.programs[p.ID] = append(set, p), u.Code
			return nil
		})
		if at := (*rowError)(nil); errors.As(err, &at) {
			line := 1 + bytes.Count(text[:at.offset], []byte("\n"))
			err = fmt.Errorf("%s:%d: row %d: %w", path, line, at.row, at.err)
		}
		switch {
		case err != nil:
			return err
		case len(set) == 0:
			return fmt.Errorf("%w: it has no rows", errNotUnleaked)
		case m.Role != events.RoleTest:
			return fmt.Errorf("benchmark %s: evaluate role test on it: it has programs and no tests", path)
		}
		return nil
	})
	return set, err
}

// rowError is an error about a row of a file.
type rowError struct {
	row    int   // from 1
	offset int64 // in the file, of its begin or of the mistake
	err    error
}

func (e *rowError) Error() string { return e.err.Error() }

// eachUnleaked calls use with each row of a text. The error is errNotUnleaked or a
// rowError.
func eachUnleaked(text []byte, use func(*unleaked) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		if _, err := d.Token(); err != nil {
			return fmt.Errorf("%w: %w", errNotUnleaked, err)
		}
	}
	for row := 1; d.More(); row++ {
		u, offset := new(unleaked), d.InputOffset()
		for offset < int64(len(text)) && bytes.IndexByte([]byte(" \t\r\n,"), text[offset]) >= 0 {
			offset++
		}
		err := d.Decode(u)
		if err == nil && (u.id() == "" || u.Prompt == "" || u.Code == "") {
			err = errors.New("want the fields task_id, prompt and code")
		}
		if err != nil && row == 1 {
			return fmt.Errorf("%w: %w", errNotUnleaked, err)
		}
		if err == nil {
			err = use(u)
		}
		if err != nil {
			return &rowError{row, offset, err}
		}
	}
	return nil
}
