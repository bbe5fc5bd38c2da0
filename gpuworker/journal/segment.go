package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"codea1/events"
)

const (
	// segmentBytes is the size from which on a segment is full.
	segmentBytes = 32 << 20
	// A record's header: length of its message, event ID, checksum of the
	// message, checksum of the header up to there.
	headerBytes = 4 + len(eventID{}) + 4 + 4
	// maxRecordBytes bounds what is read on the word of a length.
	maxRecordBytes = events.MaxPayloadBytes + 1<<20

	segmentPattern = "%08d.journal"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is a file of records, one behind the other.
type segment struct {
	file   *os.File
	number int
	size   int64 // where the next record goes
	live   int   // entries that lie here
}

// segmentNumbers returns the numbers of the segments in dir, in order.
func segmentNumbers(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, f := range files {
		var n int
		if _, err := fmt.Sscanf(f.Name(), segmentPattern, &n); err == nil && fmt.Sprintf(segmentPattern, n) == f.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func segmentPath(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf(segmentPattern, number))
}

func openSegment(dir string, number int) (*segment, error) {
	file, err := os.OpenFile(segmentPath(dir, number), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &segment{file: file, number: number, size: size}, nil
}

// createSegment returns once the file is there after a power cut.
func createSegment(dir *os.File, number int) (*segment, error) {
	file, err := os.OpenFile(segmentPath(dir.Name(), number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if err := dir.Sync(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &segment{file: file, number: number}, nil
}

// scan calls found for every record and returns up to where they are good: all
// of the file, or the place of a damage behind which nothing can be found.
// Without whole, only the headers are looked at.
func (s *segment) scan(whole bool, found func(eventID, entry)) (good int64, err error) {
	header := make([]byte, headerBytes)
	for good < s.size {
		if _, err := s.file.ReadAt(header, good); errors.Is(err, io.EOF) {
			return good, nil
		} else if err != nil {
			return good, err
		}
		id, length, ok := parseHeader(header)
		size := headerBytes + length
		if !ok || good+int64(size) > s.size {
			return good, nil
		}
		if whole {
			if _, err := s.read(good, size); errors.Is(err, errRecord) {
				return good, nil
			} else if err != nil {
				return good, err
			}
		}
		found(id, entry{s, good, size})
		good += int64(size)
	}
	return good, nil
}

// append writes records behind those that are there, and returns where they
// begin. When it fails the segment is as it was.
func (s *segment) append(records []byte) (at int64, err error) {
	at = s.size
	if _, err := s.file.WriteAt(records, at); err != nil {
		return 0, errors.Join(err, s.cut(at))
	}
	s.size += int64(len(records))
	return at, nil
}

// cut takes off what lies behind size.
func (s *segment) cut(size int64) error {
	s.size = size
	return s.file.Truncate(size)
}

// read returns the message of a record, encoded, if it is what was written
// there; otherwise errRecord.
func (s *segment) read(at int64, size int) ([]byte, error) {
	record := make([]byte, size)
	if _, err := s.file.ReadAt(record, at); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the file ends in it", errRecord)
	} else if err != nil {
		return nil, err
	}
	message := record[headerBytes:]
	_, length, ok := parseHeader(record[:headerBytes])
	if !ok || length != len(message) || crc32.Checksum(message, castagnoli) != binary.BigEndian.Uint32(record[4+len(eventID{}):]) {
		return nil, fmt.Errorf("%w: checksum", errRecord)
	}
	return message, nil
}

func (s *segment) remove() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// appendRecord appends the record of a message.
func appendRecord(b *bytes.Buffer, id eventID, m *events.Message) error {
	at := b.Len()
	b.Write(make([]byte, headerBytes))
	if err := encodeRecord(b, m); err != nil {
		return err
	}
	record := b.Bytes()[at:]
	header, message := record[:headerBytes], record[headerBytes:]
	binary.BigEndian.PutUint32(header, uint32(len(message)))
	sums := header[4+copy(header[4:], id[:]):]
	binary.BigEndian.PutUint32(sums, crc32.Checksum(message, castagnoli))
	binary.BigEndian.PutUint32(sums[4:], crc32.Checksum(header[:headerBytes-4], castagnoli))
	return nil
}

func parseHeader(header []byte) (id eventID, length int, ok bool) {
	sum := binary.BigEndian.Uint32(header[headerBytes-4:])
	if crc32.Checksum(header[:headerBytes-4], castagnoli) != sum {
		return id, 0, false
	}
	copy(id[:], header[4:])
	length = int(binary.BigEndian.Uint32(header))
	return id, length, length <= maxRecordBytes
}

// removeBadger removes a journal of the kind that was kept in Badger. What it
// held is on the bus, or is sampled anew: either way the bus keeps one event
// under its ID.
func removeBadger(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, badgerManifest)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := f.Name()
		if slices.Contains(badgerFiles, name) || slices.Contains(badgerSuffixes, filepath.Ext(name)) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return os.Remove(filepath.Join(dir, badgerManifest)) // last: it says that there is something to remove
}

const badgerManifest = "MANIFEST"

var (
	badgerFiles    = []string{"KEYREGISTRY", "DISCARD", "LOCK"}
	badgerSuffixes = []string{".mem", ".sst", ".vlog"}
)
