// Package export writes tables of a run as JSONL or parquet: events, answers,
// tests, problems with generated tests, pairs of answers, and the Mistake Book.
//
// It reads the log through eventlog.Reader, and knows neither files nor flags:
// the caller gives it a writer. Memory is bounded by a row group and by the number
// of problems, not by the length of the log.
//
// Start reading at export.go; rows.go has the columns.
package export
