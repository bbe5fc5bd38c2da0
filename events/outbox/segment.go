package outbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"codea1/events"
)

const (
	// segmentBytes is the size from which on a segment gets no more records.
	segmentBytes = 32 << 20
	// headerBytes is the size of a record's header: length of the message, event
	// ID, checksum of the message, checksum of these three fields.
	headerBytes = 4 + len(eventID{}) + 4 + 4
	// maxRecordBytes bounds the length that a header may state.
	maxRecordBytes = events.MaxPayloadBytes + 1<<20

	segmentPattern = "%08d.outbox"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is a file of records.
type segment struct {
	file   *os.File
	number int
	size   int64 // where the next record goes
	live   int   // records of the queue that are in this file
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

// createSegment makes an empty segment and syncs the directory, so that the
// file exists after a power cut.
func createSegment(dir string, number int) (*segment, error) {
	file, err := os.OpenFile(segmentPath(dir, number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syncDirectory(dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &segment{file: file, number: number}, nil
}

// scan calls found for every record. It returns the size of the file, or the
// offset of the first damage that hides the records behind it. If whole is
// false it reads only the headers.
func (s *segment) scan(whole bool, found func(eventID, location)) (good int64, err error) {
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
		found(id, location{s, good, size})
		good += int64(size)
	}
	return good, nil
}

// append writes a record to the end of the file and returns its offset. If it
// fails the segment is unchanged.
func (s *segment) append(record []byte) (offset int64, err error) {
	offset = s.size
	if _, err := s.file.WriteAt(record, offset); err != nil {
		return 0, errors.Join(err, s.cut(offset))
	}
	s.size += int64(len(record))
	return offset, nil
}

// cut truncates the file.
func (s *segment) cut(size int64) error {
	s.size = size
	return s.file.Truncate(size)
}

// read returns the encoded message of a record, or errRecord if the record is
// damaged.
func (s *segment) read(offset int64, size int) ([]byte, error) {
	record := make([]byte, size)
	if _, err := s.file.ReadAt(record, offset); errors.Is(err, io.EOF) {
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

// syncDirectory makes the creation of a file in dir durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *segment) remove() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// appendRecord appends the record of a message.
func appendRecord(b *bytes.Buffer, id eventID, m *events.Message) error {
	offset := b.Len()
	b.Write(make([]byte, headerBytes))
	if err := encodeRecord(b, m); err != nil {
		return err
	}
	record := b.Bytes()[offset:]
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
