// Package badgerdir knows the files of a Badger directory: it opens one for
// writing, copies one for a reader, and detects damage that Badger itself would
// answer by deleting data or by ending the process.
//
// It owns tables, write-ahead logs, value logs, the locks and the free space of
// such a directory. It must not know any key or value in it: those belong to
// package eventlog.
//
// Start reading at open.go, then snapshot.go.
package badgerdir
