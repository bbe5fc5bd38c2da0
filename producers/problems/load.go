package problems

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
)

// MaxRows is the largest set that is read.
const MaxRows = 2_000_000

// Names of the built-in sets. BuiltinAll is both, training first.
const (
	BuiltinAll      = "builtin"
	BuiltinTraining = "builtin:train"
	BuiltinHeldOut  = "builtin:heldout"
)

// ErrUnknownSet is wrapped when a reference names no set that can be read.
var ErrUnknownSet = errors.New("unknown question set")

// BadRowPolicy says what happens to a row that is not a valid problem.
type BadRowPolicy string

// The policies.
const (
	SkipBadRows   BadRowPolicy = "skip" // report the row and go on
	FailOnBadRows BadRowPolicy = "fail" // end with its *BadRowError
)

// LoadOptions configures Load. Its zero value fails on the first bad row.
type LoadOptions struct {
	OnBadRow BadRowPolicy       // FailOnBadRows when empty
	Report   func(*BadRowError) // told of each skipped row; may be nil
}

// BadRowError is a row that is not a valid problem.
type BadRowError struct {
	File  string
	Row   int    // from 1; for JSONL the line
	Field string // as in the file, "" when the row as a whole is unreadable
	Err   error
}

func (e *BadRowError) Error() string {
	where := fmt.Sprintf("%s: row %d", e.File, e.Row)
	if e.Field != "" {
		where += ": field " + e.Field
	}
	return where + ": " + e.Err.Error()
}

func (e *BadRowError) Unwrap() error { return e.Err }

// row is what a format's reader makes of one row. bad, when set, says why it
// is not a problem; it may be a *FieldError.
type row struct {
	number  int
	problem Problem
	bad     error
}

// rows yields the rows of an open file in order. An error ends it.
type rows iter.Seq2[row, error]

// Load reads a set: one of the built-in ones by name, or a file by its path,
// its format told by its extension (.jsonl, .jsonl.gz, .parquet) and, for
// parquet, its columns. Problems come in the order of the file, each valid and
// with an ID of its own. A non-nil error ends the sequence: a *BadRowError
// under FailOnBadRows, otherwise a failure to read.
func Load(ctx context.Context, ref string, options LoadOptions) iter.Seq2[*Problem, error] {
	if options.OnBadRow == "" {
		options.OnBadRow = FailOnBadRows
	}
	return func(yield func(*Problem, error) bool) {
		source, err := open(ref)
		if err != nil {
			yield(nil, err)
			return
		}
		firstRow := map[string]int{}
		for r, err := range source {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && r.number > MaxRows {
				err = fmt.Errorf("more than %d rows", MaxRows)
			}
			if err != nil {
				yield(nil, fmt.Errorf("question set %s: %w", ref, err))
				return
			}
			if bad := r.check(ref, firstRow); bad != nil {
				if options.OnBadRow == FailOnBadRows {
					yield(nil, bad)
					return
				}
				if options.Report != nil {
					options.Report(bad)
				}
				continue
			}
			firstRow[r.problem.ID] = r.number
			if !yield(&r.problem, nil) {
				return
			}
		}
	}
}

// check returns why the row is bad, nil if it is not. firstRow maps the IDs
// read so far to their rows.
func (r *row) check(file string, firstRow map[string]int) *BadRowError {
	err := r.bad
	if err == nil {
		err = r.problem.Validate()
	}
	if first, repeated := firstRow[r.problem.ID]; err == nil && repeated {
		err = &FieldError{"id", fmt.Sprintf("%q is that of row %d too", r.problem.ID, first)}
	}
	if err == nil {
		return nil
	}
	bad := &BadRowError{File: file, Row: r.number, Err: err}
	if field := (*FieldError)(nil); errors.As(err, &field) {
		bad.Field, bad.Err = field.Field, fmt.Errorf("%w: %s", ErrInvalid, field.Reason)
	}
	return bad
}

// ReadAll reads a whole set and returns it with the number of rows skipped.
func ReadAll(ctx context.Context, ref string, options LoadOptions) (set []Problem, skipped int, err error) {
	report := options.Report
	options.Report = func(bad *BadRowError) {
		skipped++
		if report != nil {
			report(bad)
		}
	}
	for problem, err := range Load(ctx, ref, options) {
		if err != nil {
			return nil, skipped, err
		}
		set = append(set, *problem)
	}
	if len(set) == 0 {
		return nil, skipped, fmt.Errorf("question set %s: no problem in it, %d rows skipped", ref, skipped)
	}
	return set, skipped, nil
}

// open returns the reader of a reference.
func open(ref string) (rows, error) {
	switch ref {
	case BuiltinAll:
		return builtinRows(builtinTraining, builtinHeldOut), nil
	case BuiltinTraining:
		return builtinRows(builtinTraining), nil
	case BuiltinHeldOut:
		return builtinRows(builtinHeldOut), nil
	default:
		return openFile(ref)
	}
}

func openFile(path string) (rows, error) {
	name := strings.ToLower(filepath.Base(path))
	switch {
	case strings.HasPrefix(path, BuiltinAll+":"):
		return nil, fmt.Errorf("%w %q: the built-in ones are %s and %s", ErrUnknownSet, path, BuiltinTraining, BuiltinHeldOut)
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".jsonl.gz"):
		return jsonlFile(path, strings.HasSuffix(name, ".gz")), nil
	case strings.HasSuffix(name, ".parquet"):
		return parquetFile(path), nil
	default:
		return nil, fmt.Errorf("%w %q: a set is %s, %s, %s or a file ending in .jsonl, .jsonl.gz or .parquet",
			ErrUnknownSet, path, BuiltinAll, BuiltinTraining, BuiltinHeldOut)
	}
}
