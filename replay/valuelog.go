package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// Badger cuts the newest value log before the first entry whose checksum is
// wrong, wherever that is. A batch lies there in no particular order, so what a
// cut takes need not show at the end of the log.

// valueLogEnd returns the newest value log in dir, "" where there is none, and
// its size without the zeros that Badger makes it longer by.
func valueLogEnd(dir string) (path string, end int64, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+valueLogSuffix)) // sorted, and of one length
	if err != nil || len(paths) == 0 {
		return "", 0, err
	}
	path = paths[len(paths)-1]
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err = file.Seek(0, io.SeekEnd)
	block := make([]byte, 1<<20)
	for err == nil && end > 0 {
		part := block[:min(end, int64(len(block)))]
		start := end - int64(len(part))
		if _, err = file.ReadAt(part, start); err != nil {
			break
		}
		if data := bytes.TrimRight(part, "\x00"); len(data) > 0 {
			return path, start + int64(len(data)), nil
		}
		end = start
	}
	return path, end, err
}

// isShorter reports whether a file ends before a size, or is gone.
func isShorter(path string, size int64) bool {
	info, err := os.Stat(path)
	return err != nil || info.Size() < size
}

// checkValues reads all that a log cannot do without. It is for a store whose
// newest value log was cut: nothing leads to what an interrupted write has left.
func (l *Log) checkValues(ctx context.Context, txn *badger.Txn) error {
	err := l.scan(ctx, txn, ScanOptions{}, func(item *badger.Item) (bool, error) {
		_, _, err := l.record(item)
		return true, err
	})
	if err != nil {
		return err
	}
	for _, err := range l.indexEntries(txn, l.head.seq) {
		if err != nil {
			return err
		}
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceDeltas}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil || len(value) == 0 { // why, Badger only logs
			seq, _ := seqOf(it.Item().Key())
			return l.corrupt(seq, "deltas cannot be read", err)
		}
	}
	return nil
}
