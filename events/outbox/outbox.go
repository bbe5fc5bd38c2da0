package outbox

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/gofrs/flock"

	"codea1/events"
)

var (
	// ErrInUse is returned by Open when another process has the outbox open.
	ErrInUse = errors.New("outbox is in use by another process")
	// ErrClosed is returned by every call on a closed Outbox.
	ErrClosed = errors.New("outbox is closed")
)

// Options bounds an outbox.
type Options struct {
	MaxMessages int          // default 16,384: more than a bus delivers again after a crash
	MaxBytes    int64        // of the records; default 1 GiB. The files may take one segment (32 MiB) more
	Logger      *slog.Logger // gets a warning about damage; default: none
}

func (o Options) withDefaults() Options {
	if o.MaxMessages == 0 {
		o.MaxMessages = 16 << 10
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Outbox is a store of messages on disk. It is safe for concurrent use.
type Outbox struct {
	options Options
	dir     string
	lock    *flock.Flock

	// syncing is held during a sync and while files are closed. One sync serves
	// every writer that wrote before it began. It is locked before mu.
	syncing sync.Mutex
	synced  int64 // how many of the written bytes are on disk

	mu       sync.Mutex
	closed   bool
	segments []*segment // oldest first; the last one is written to
	records  map[eventID]location
	queue    []queued     // oldest first
	bytes    int64        // size of all records in the queue
	written  int64        // bytes written since Open
	buffer   bytes.Buffer // of the record being written
	failed   error        // of a sync: from then on the content of the disk is unknown
}

// location is the place of a record on disk.
type location struct {
	in     *segment
	offset int64
	size   int
}

// queued is a record in the queue of those to drop.
type queued struct {
	id eventID
	location
}

// eventID is the binary form of an event's ID.
type eventID [16]byte

func parseID(s string) (id eventID, err error) {
	if len(s) != hex.EncodedLen(len(id)) {
		return id, fmt.Errorf("%d characters, want %d", len(s), hex.EncodedLen(len(id)))
	}
	_, err = hex.Decode(id[:], []byte(s))
	return id, err
}

// Open opens the outbox in dir and creates the directory if it is missing.
// Damaged records do not make it fail: they are left out, and the logger gets
// a warning.
func Open(dir string, options Options) (*Outbox, error) {
	options = options.withDefaults()
	if options.MaxMessages < 1 || options.MaxBytes < 1 {
		return nil, fmt.Errorf("outbox %s: limits must be positive", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	o := &Outbox{
		options: options, dir: dir, records: make(map[eventID]location),
		lock: flock.New(dir, flock.SetFlag(os.O_RDONLY)), // the directory itself
	}
	locked, err := o.lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%w; stop it or choose another directory", ErrInUse)
	}
	if err == nil {
		err = o.load()
	}
	if err != nil {
		return nil, fmt.Errorf("outbox %s: %w", dir, errors.Join(err, o.Close()))
	}
	return o, nil
}

// load opens the segments and indexes their records.
func (o *Outbox) load() error {
	numbers, err := segmentNumbers(o.dir)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		s, err := openSegment(o.dir, number)
		if err != nil {
			return err
		}
		o.segments = append(o.segments, s)
		// Only the last write can be incomplete. It is cut off, because a record
		// behind it could not be found.
		newest := i == len(numbers)-1
		good, err := s.scan(newest, o.add)
		if err != nil {
			return err
		}
		if good < s.size {
			o.options.Logger.Warn("outbox is damaged: the rest of the file is left out",
				"file", s.file.Name(), "offset", good, "bytes", s.size-good, "cut", newest)
		}
		if newest && good < s.size {
			if err := s.cut(good); err != nil {
				return err
			}
		}
	}
	if len(o.segments) == 0 {
		if err := o.roll(); err != nil {
			return err
		}
	}
	return o.trim()
}

// add indexes a record. It replaces an older record of the same ID: that one
// was unreadable when this one was written.
func (o *Outbox) add(id eventID, l location) {
	o.records[id] = l
	o.queue = append(o.queue, queued{id, l})
	o.bytes += int64(l.size)
	l.in.live++
}

// Get returns the message stored under an event ID, and false if there is none
// or it is damaged. A message that it returns is on disk.
func (o *Outbox) Get(id string) (events.Message, bool, error) {
	key, err := parseID(id)
	if err != nil {
		return events.Message{}, false, nil //nolint:nilerr // no event has a malformed ID
	}
	m, written, found, err := o.find(key)
	if err == nil && found {
		err = o.sync(written) // its Put may not have returned yet
	}
	if err != nil {
		return events.Message{}, false, fmt.Errorf("outbox: event %s: %w", id, err)
	}
	return m, found, nil
}

// find returns a message, and the number of written bytes that must be on disk
// for the message to be.
func (o *Outbox) find(id eventID) (m events.Message, written int64, found bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return m, 0, false, ErrClosed
	}
	l, ok := o.records[id]
	if !ok {
		return m, 0, false, nil
	}
	record, err := l.in.read(l.offset, l.size)
	if err == nil {
		m, err = decodeRecord(record)
	}
	if errors.Is(err, errRecord) {
		o.options.Logger.Warn("outbox is damaged: a message is left out",
			"file", l.in.file.Name(), "offset", l.offset, "event", hex.EncodeToString(id[:]), "error", err)
		delete(o.records, id) // a new message may be stored under the ID
		return m, 0, false, nil
	}
	return m, o.written, err == nil, err
}

// Put stores messages and returns once they are on disk. If an ID has a message
// already, that message stays. If Put fails, some of the messages may be stored.
func (o *Outbox) Put(messages []events.Message) error {
	written, err := o.write(messages)
	if err == nil {
		err = o.sync(written)
	}
	if err == nil {
		err = o.dropOldest()
	}
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// write appends the messages that are not stored yet. It returns the number of
// written bytes that must be on disk for all messages to be.
func (o *Outbox) write(messages []events.Message) (written int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, ErrClosed
	}
	if o.failed != nil {
		return 0, o.failed
	}
	for i := range messages {
		m := &messages[i]
		id, err := parseID(m.ID)
		if err != nil {
			return 0, fmt.Errorf("event %q: %w", m.ID, err)
		}
		if _, ok := o.records[id]; ok {
			continue
		}
		o.buffer.Reset()
		if err := appendRecord(&o.buffer, id, m); err != nil {
			return 0, fmt.Errorf("event %s: encode: %w", m.ID, err)
		}
		s := o.segments[len(o.segments)-1]
		offset, err := s.append(o.buffer.Bytes())
		if err != nil {
			return 0, err
		}
		o.add(id, location{s, offset, o.buffer.Len()})
		o.written += int64(o.buffer.Len())
		if s.size >= segmentBytes {
			if err := o.roll(); err != nil {
				return 0, err
			}
		}
	}
	return o.written, nil
}

// roll begins a new segment once the one before is on disk. The caller holds
// mu, except in Open.
func (o *Outbox) roll() error {
	number := 1
	if n := len(o.segments); n > 0 {
		number = o.segments[n-1].number + 1
		if err := o.segments[n-1].file.Sync(); err != nil {
			o.failed = err
			return err
		}
	}
	s, err := createSegment(o.dir, number)
	if err == nil {
		o.segments = append(o.segments, s)
	}
	return err
}

// sync returns once that many of the written bytes are on disk.
func (o *Outbox) sync(written int64) error {
	o.syncing.Lock()
	defer o.syncing.Unlock()
	if o.synced >= written {
		return nil
	}
	o.mu.Lock()
	err := o.failed
	if o.closed {
		err = ErrClosed
	}
	var last *segment
	if err == nil {
		last, written = o.segments[len(o.segments)-1], o.written
	}
	o.mu.Unlock()
	if err != nil {
		return err
	}
	if err := last.file.Sync(); err != nil {
		o.mu.Lock()
		o.failed = err
		o.mu.Unlock()
		return err
	}
	o.synced = written
	return nil
}

// dropOldest trims an outbox that is over its bounds.
func (o *Outbox) dropOldest() error {
	o.mu.Lock()
	over := !o.closed && o.over()
	o.mu.Unlock()
	if !over {
		return nil
	}
	o.syncing.Lock() // trim closes files
	defer o.syncing.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	return o.trim()
}

func (o *Outbox) over() bool {
	return len(o.queue) > o.options.MaxMessages || o.bytes > o.options.MaxBytes
}

// trim drops the oldest records until the outbox is within its bounds, and
// deletes the segments that have no record left.
func (o *Outbox) trim() error {
	for o.over() {
		oldest := o.queue[0]
		o.queue = o.queue[1:]
		if o.records[oldest.id] == oldest.location {
			delete(o.records, oldest.id)
		}
		o.bytes -= int64(oldest.size)
		oldest.in.live--
	}
	for len(o.segments) > 1 && o.segments[0].live == 0 {
		if err := o.segments[0].remove(); err != nil {
			return fmt.Errorf("drop the oldest records: %w", err)
		}
		o.segments = o.segments[1:]
	}
	return nil
}

// Close releases the directory. A second call does nothing.
func (o *Outbox) Close() error {
	o.syncing.Lock()
	defer o.syncing.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	var errs []error
	for _, s := range o.segments {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(append(errs, o.lock.Close())...)
}
