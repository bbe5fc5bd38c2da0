package problems

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
)

// MaxRows is the number of rows of the largest set that is read.
const MaxRows = 2_000_000

// Names of the built-in sets. BuiltinAll is the default training and held-out
// problems, in this order. The harder set is beside them.
const (
	BuiltinAll         = "builtin"
	BuiltinTraining    = "builtin:train"
	BuiltinHeldOut     = "builtin:heldout"
	BuiltinHard        = "builtin:hard"
	BuiltinHardHeldOut = "builtin:hard-heldout"
)

// ErrUnknownSet is wrapped when a reference names no set that can be read.
var ErrUnknownSet = errors.New("unknown problem set")

// BadRowPolicy is the treatment of a row that is not a valid problem.
type BadRowPolicy string

// The policies.
const (
	SkipBadRows   BadRowPolicy = "skip" // report the row and continue
	FailOnBadRows BadRowPolicy = "fail" // end with its *BadRowError
)

// LoadOptions configures Load. Its zero value fails on the first bad row.
type LoadOptions struct {
	OnBadRow BadRowPolicy       // default: FailOnBadRows
	Report   func(*BadRowError) // called with each skipped row; may be nil
}

// BadRowError is a row that is not a valid problem.
type BadRowError struct {
	File string
	Row  int   // from 1; for JSONL the line
	Err  error // a *FieldError unless the row as a whole is unreadable
}

func (e *BadRowError) Error() string { return fmt.Sprintf("%s: row %d: %v", e.File, e.Row, e.Err) }

func (e *BadRowError) Unwrap() error { return e.Err }

// row is one row as the reader of a format returns it.
type row struct {
	number  int
	problem Problem
	err     error // why the row is not a problem; nil if it is one
}

// rows yields the rows of a set in order. An error ends it.
type rows iter.Seq2[row, error]

// Load reads a set: a built-in one by name or a file by its path. The file's
// extension tells its format (.jsonl, .jsonl.gz, .parquet), the columns of a
// parquet file their layout. Problems come in the order of the file. Each is
// valid and has an ID of its own. A non-nil error ends the sequence: a
// *BadRowError under FailOnBadRows, otherwise a failure to read.
func Load(ctx context.Context, ref string, options LoadOptions) iter.Seq2[*Problem, error] {
	return func(yield func(*Problem, error) bool) {
		source, err := open(ref)
		if err != nil {
			yield(nil, err)
			return
		}
		rowOf := map[string]int{} // by ID
		zipped := isGzip(ref)     // and not yet checked
		for r, err := range source {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && r.number > MaxRows {
				err = fmt.Errorf("more than %d rows", MaxRows)
			}
			if err != nil {
				yield(nil, fmt.Errorf("problem set %s: %w", ref, err))
				return
			}
			if err := r.check(rowOf); err != nil {
				// Damaged gzip decompresses to bad rows before its checksum is read.
				if zipped {
					if err := checkGzip(ref); err != nil {
						yield(nil, fmt.Errorf("problem set %s: %w", ref, err))
						return
					}
					zipped = false
				}
				bad := &BadRowError{File: ref, Row: r.number, Err: err}
				if options.OnBadRow != SkipBadRows {
					yield(nil, bad)
					return
				}
				if options.Report != nil {
					options.Report(bad)
				}
				continue
			}
			rowOf[r.problem.ID] = r.number
			if !yield(&r.problem, nil) {
				return
			}
		}
	}
}

// check returns why the row is bad; nil if it is not. rowOf has the rows of the
// IDs read so far.
func (r *row) check(rowOf map[string]int) error {
	if r.err != nil {
		return r.err
	}
	if err := r.problem.Validate(); err != nil {
		return err
	}
	if first, repeated := rowOf[r.problem.ID]; repeated {
		return &FieldError{"id", fmt.Sprintf("%q is also that of row %d", r.problem.ID, first)}
	}
	return nil
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
		return nil, skipped, fmt.Errorf("problem set %s: it has no problem, %d rows were skipped", ref, skipped)
	}
	return set, skipped, nil
}

// open returns the reader of a reference.
func open(ref string) (rows, error) {
	name := strings.ToLower(filepath.Base(ref))
	switch {
	case ref == BuiltinAll:
		return builtinRows(builtinTraining, builtinHeldOut), nil
	case ref == BuiltinTraining:
		return builtinRows(builtinTraining), nil
	case ref == BuiltinHeldOut:
		return builtinRows(builtinHeldOut), nil
	case ref == BuiltinHard:
		return builtinRows(builtinHard), nil
	case ref == BuiltinHardHeldOut:
		return builtinRows(builtinHardHeldOut), nil
	case strings.HasPrefix(ref, BuiltinAll+":"):
		return nil, fmt.Errorf("%w %q: the built-in ones are %s, %s, %s and %s",
			ErrUnknownSet, ref, BuiltinTraining, BuiltinHeldOut, BuiltinHard, BuiltinHardHeldOut)
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".jsonl.gz"):
		return jsonlFile(ref, isGzip(ref)), nil
	case strings.HasSuffix(name, ".parquet"):
		return parquetFile(ref), nil
	default:
		return nil, fmt.Errorf("%w %q: a set is %s, %s, %s, %s, %s or a file ending in .jsonl, .jsonl.gz or .parquet",
			ErrUnknownSet, ref, BuiltinAll, BuiltinTraining, BuiltinHeldOut, BuiltinHard, BuiltinHardHeldOut)
	}
}
