package badgerdir

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// Badger takes the first entry of a write-ahead log with a wrong checksum for the
// place where a kill tore the log, and drops all that follows. That is correct for
// the last transaction: the one before it was on disk by then. After a flipped byte
// in an earlier one Badger would drop acknowledged transactions.

// WALStart is the offset of the first entry of a write-ahead log.
const WALStart = 20

// checkWriteAheadLogs returns an error if a write-ahead log in dir is damaged before
// its last transactions. No writer may have dir open.
func checkWriteAheadLogs(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+MemTableSuffix))
	if err != nil {
		return err
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at, damaged := walDamage(raw); damaged {
			return fmt.Errorf("write-ahead log %s is damaged at byte %d, and whole transactions follow", filepath.Base(path), at)
		}
	}
	return nil
}

// walDamage returns the end of the readable entries of a write-ahead log. The log is
// damaged if entries of two transactions or more follow: a kill tears only the last
// one.
func walDamage(raw []byte) (at int, damaged bool) {
	end := len(bytes.TrimRight(raw, "\x00")) // the file is larger than its data
	for at = WALStart; at < end; {
		size, _ := walEntry(raw[at:])
		if size == 0 {
			break
		}
		at += size
	}
	if at >= end || bytes.Equal(raw[at:min(at+walLeast, len(raw))], make([]byte, walLeast)) {
		return at, false
	}
	versions := make(map[uint64]bool)
	for next := at + 1; next < end && len(versions) < 2; {
		size, version := walEntry(raw[next:])
		if size == 0 {
			next++
			continue
		}
		versions[version] = true
		next += size
	}
	return at, len(versions) == 2
}

// walLeast is the size of an entry without key and value.
const walLeast = 2 + 3 + crc32.Size

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// walEntry returns the size of the entry at the start of b, 0 if there is none, and
// the version of its transaction. An entry has two bytes of flags; the lengths of
// key and value and a time, as uvarints; key and value; a checksum. A key ends with
// eight bytes of its version.
func walEntry(b []byte) (size int, version uint64) {
	if len(b) < walLeast {
		return 0, 0
	}
	var lengths [3]uint64
	size = 2
	for i := range lengths {
		var n int
		if lengths[i], n = binary.Uvarint(b[size:]); n <= 0 {
			return 0, 0
		}
		size += n
	}
	const version8 = 8
	room := uint64(len(b) - size)
	if lengths[0] <= version8 || lengths[0] > room || lengths[1] > room || lengths[0]+lengths[1]+crc32.Size > room {
		return 0, 0
	}
	key := b[size:][:lengths[0]]
	size += int(lengths[0] + lengths[1])
	if crc32.Checksum(b[:size], castagnoli) != binary.BigEndian.Uint32(b[size:]) {
		return 0, 0
	}
	return size + crc32.Size, binary.BigEndian.Uint64(key[len(key)-version8:])
}
