// Package export writes tables of a run as JSONL or parquet: events, answers,
// tests, problems with generated tests, and the Mistake Book.
//
// It reads the log through eventlog.Reader. Memory is bounded by a row group,
// not by the log. Start reading at export.go; rows.go defines the columns.
package export
