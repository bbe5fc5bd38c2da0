package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

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

func (u *unleaked) id() string { return strings.Trim(string(u.ID), `"`) }

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

// readUnleaked returns the problems of a file of UnLeakedTestBench, and notes their
// programs without the imports. Its authors write one JSON array; a file may also have a row a line.
func (m *Maker) readUnleaked(path, source string) (set []*evalplus.Problem, err error) {
	if m.programs == nil {
		m.programs = map[string]string{}
	}
	err = grading.ReadFile(path, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		var rows []unleaked
		if err := json.Unmarshal(text, &rows); err != nil {
			for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
				rows = append(rows, unleaked{})
				if err := d.Decode(&rows[len(rows)-1]); err != nil {
					return fmt.Errorf("%w: row %d: %w", errNotUnleaked, len(rows), err)
				}
			}
		}
		for i := range rows {
			u := &rows[i]
			if u.id() == "" || u.Prompt == "" || u.Code == "" {
				return fmt.Errorf("%w: row %d lacks one", errNotUnleaked, i+1)
			}
			p, err := u.problem(source)
			if err != nil {
				return fmt.Errorf("%s: row %d: %w", path, i+1, err)
			}
			set, m.programs[p.ID] = append(set, p), u.Code
		}
		switch {
		case len(set) == 0:
			return fmt.Errorf("%w: it has no rows", errNotUnleaked)
		case m.Role != events.RoleTest:
			return fmt.Errorf("benchmark %s: evaluate role test on it: it has programs and no tests", path)
		}
		return nil
	})
	return set, err
}
