package track

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"codea1/consumers/dashboard"
)

// tensorBoard writes an event file, tensorboard/RUN/events.out.tfevents.*. The file is a
// sequence of TFRecords with the message Event of TensorFlow's event.proto.
type tensorBoard struct {
	file   *os.File
	buffer *bufio.Writer
}

// Field numbers of the messages Event, Summary, Summary.Value and SessionLog.
const (
	eventWallTime    = 1 // double
	eventStep        = 2 // int64
	eventFileVersion = 3 // string
	eventSummary     = 5 // Summary
	eventSessionLog  = 7 // SessionLog

	summaryValue = 1 // repeated Value

	valueTag    = 1 // string
	valueSimple = 2 // float

	sessionStatus = 1 // enum
	sessionStart  = 1
)

// eventFileSuffix tells the files of this program from those of others.
const eventFileSuffix = ".codea1"

func openTensorBoard(h *header) (sink, error) {
	dir := filepath.Join(h.dir, "tensorboard", h.run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(escapeGlob(dir), "events.out.tfevents.*"+eventFileSuffix))
	if err != nil {
		return nil, err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// TensorBoard reads the files of a directory in the order of their names.
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%019d%s", time.Now().UnixNano(), eventFileSuffix)))
	if err != nil {
		return nil, err
	}
	s := &tensorBoard{file: f, buffer: bufio.NewWriter(f)}
	version := protowire.AppendString(protowire.AppendTag(nil, eventFileVersion, protowire.BytesType), "brain.Event:2")
	// A TensorBoard that has read an earlier file of the run forgets it here.
	start := protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus, protowire.VarintType), sessionStart)
	start = protowire.AppendBytes(protowire.AppendTag(nil, eventSessionLog, protowire.BytesType), start)
	return s, errors.Join(s.event(h.began, 0, version), s.event(h.began, 0, start))
}

func (s *tensorBoard) write(row dashboard.Row) error {
	var summary []byte
	for _, name := range slices.Sorted(maps.Keys(row.Figures)) {
		value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), name)
		value = protowire.AppendFixed32(protowire.AppendTag(value, valueSimple, protowire.Fixed32Type), math.Float32bits(float32(row.Figures[name])))
		summary = protowire.AppendBytes(protowire.AppendTag(summary, summaryValue, protowire.BytesType), value)
	}
	return s.event(row.Time, row.Step, protowire.AppendBytes(protowire.AppendTag(nil, eventSummary, protowire.BytesType), summary))
}

// event appends an Event with one more field.
func (s *tensorBoard) event(at time.Time, step int, field []byte) error {
	event := protowire.AppendFixed64(protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type), math.Float64bits(float64(at.UnixMicro())/1e6))
	event = protowire.AppendVarint(protowire.AppendTag(event, eventStep, protowire.VarintType), uint64(step))
	_, err := s.buffer.Write(record(append(event, field...)))
	return err
}

// record frames data as a TFRecord: length, its checksum, data, its checksum.
func record(data []byte) []byte {
	framed := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	framed = binary.LittleEndian.AppendUint32(framed, maskedCRC(framed))
	framed = append(framed, data...)
	return binary.LittleEndian.AppendUint32(framed, maskedCRC(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the CRC-32C of data, rotated and moved as TFRecords have it.
func maskedCRC(data []byte) uint32 {
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

func (s *tensorBoard) flush() error { return s.buffer.Flush() }

func (s *tensorBoard) close(string) error { return errors.Join(s.flush(), s.file.Close()) }
