package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"codea1/events"
)

var (
	// ErrInUse is returned by Open when another process holds the journal.
	ErrInUse = errors.New("journal is in use by another process")
	// ErrClosed is returned by every call on a closed Journal.
	ErrClosed = errors.New("journal is closed")
)

// Options bounds a journal.
type Options struct {
	MaxEntries int          // messages kept; default 16,384, above what a bus delivers again after a crash
	MaxBytes   int64        // encoded bytes kept; default 1 GiB. Files take one segment more, 32 MiB
	Logger     *slog.Logger // hears of damage; default: none
}

func (o Options) withDefaults() Options {
	if o.MaxEntries == 0 {
		o.MaxEntries = 16 << 10
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// writeBytes is how much is written at once, at least, while there is more.
const writeBytes = 1 << 20

// Journal is safe for concurrent use.
type Journal struct {
	options Options
	dir     *os.File // locked; nil once closed

	// syncing is held by who waits for the disk, for all who have written by
	// then, and by who closes files. It is taken before mu.
	syncing sync.Mutex
	synced  int64 // how many of the bytes written are on disk

	mu       sync.Mutex
	segments []*segment // oldest first; the last one is written to
	entries  map[eventID]entry
	queue    []queued // oldest first
	bytes    int64    // size of all in the queue
	written  int64    // bytes written since Open
	buffer   bytes.Buffer
	failed   error // of a sync: what the disk has is not known any more
}

// entry is where a record lies.
type entry struct {
	in   *segment
	at   int64
	size int
}

// queued is an entry in its turn to be dropped.
type queued struct {
	id eventID
	entry
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

// Open opens the journal in dir, which is made where it is missing. Damage does
// not keep it from opening: what is damaged is as if it had never been
// journalled, and the logger hears of it.
func Open(dir string, options Options) (*Journal, error) {
	options = options.withDefaults()
	if options.MaxEntries < 1 || options.MaxBytes < 1 {
		return nil, fmt.Errorf("journal %s: limits must be positive", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{options: options, dir: folder, entries: make(map[eventID]entry)}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w; stop it or choose another directory", ErrInUse)
	}
	if err == nil {
		err = j.load()
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, errors.Join(err, j.Close()))
	}
	return j, nil
}

// load finds what is there.
func (j *Journal) load() error {
	if err := removeBadger(j.dir.Name()); err != nil {
		return err
	}
	numbers, err := segmentNumbers(j.dir.Name())
	if err != nil {
		return err
	}
	for i, number := range numbers {
		s, err := openSegment(j.dir.Name(), number)
		if err != nil {
			return err
		}
		j.segments = append(j.segments, s)
		// Only what was written last can be torn. It is cut off, so that what is
		// appended can be found.
		newest := i == len(numbers)-1
		good, err := s.scan(newest, j.add)
		if err != nil {
			return err
		}
		if good < s.size {
			j.options.Logger.Warn("journal is damaged: what follows in the file is left out",
				"file", s.file.Name(), "offset", good, "bytes", s.size-good, "cut", newest)
		}
		if newest && good < s.size {
			if err := s.cut(good); err != nil {
				return err
			}
		}
	}
	if len(j.segments) == 0 {
		if err := j.roll(); err != nil {
			return err
		}
	}
	return j.trim()
}

// add takes down a record. One that there is under its ID already was damaged
// when this one was written.
func (j *Journal) add(id eventID, e entry) {
	j.entries[id] = e
	j.queue = append(j.queue, queued{id, e})
	j.bytes += int64(e.size)
	e.in.live++
}

// Get returns the message journalled under an event id; false when there is
// none, or none any more that is whole.
func (j *Journal) Get(id string) (events.Message, bool, error) {
	key, err := parseID(id)
	if err != nil {
		return events.Message{}, false, nil //nolint:nilerr // what is no ID names no event
	}
	m, written, found, err := j.find(key)
	if err == nil && found {
		err = j.sync(written) // whoever journals it has not been told yet
	}
	if err != nil {
		return events.Message{}, false, fmt.Errorf("journal: event %s: %w", id, err)
	}
	return m, found, nil
}

// find returns a message, and up to where the disk must have what was written
// for it to stay.
func (j *Journal) find(id eventID) (m events.Message, written int64, found bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dir == nil {
		return m, 0, false, ErrClosed
	}
	e, ok := j.entries[id]
	if !ok {
		return m, 0, false, nil
	}
	record, err := e.in.read(e.at, e.size)
	if err == nil {
		m, err = decodeRecord(record)
	}
	if errors.Is(err, errRecord) {
		j.options.Logger.Warn("journal is damaged: a message is left out",
			"file", e.in.file.Name(), "offset", e.at, "event", hex.EncodeToString(id[:]), "error", err)
		delete(j.entries, id) // another may be journalled in its place
		return m, 0, false, nil
	}
	return m, j.written, err == nil, err
}

// Put journals messages and returns once they are on disk. The first message
// of an id stands: another one under the same id changes nothing. When it
// fails, some of the messages may have been journalled.
func (j *Journal) Put(messages []events.Message) error {
	written, err := j.write(messages)
	if err == nil {
		err = j.sync(written)
	}
	if err == nil {
		err = j.forget()
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// write appends what is not there yet, and returns up to where the disk must
// have what was written for all messages to stay.
func (j *Journal) write(messages []events.Message) (written int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dir == nil {
		return 0, ErrClosed
	}
	if j.failed != nil {
		return 0, j.failed
	}
	type place struct {
		id   eventID
		at   int64 // in the buffer
		size int
	}
	var places []place
	flush := func() error {
		s := j.segments[len(j.segments)-1]
		at, err := s.append(j.buffer.Bytes())
		if err != nil {
			return err
		}
		for _, p := range places {
			j.add(p.id, entry{s, at + p.at, p.size})
		}
		j.written += int64(j.buffer.Len())
		places = places[:0]
		j.buffer.Reset()
		if s.size >= segmentBytes {
			return j.roll()
		}
		return nil
	}
	j.buffer.Reset()
	pending := make(map[eventID]bool)
	for i := range messages {
		m := &messages[i]
		id, err := parseID(m.ID)
		if err != nil {
			return 0, fmt.Errorf("event %q: %w", m.ID, err)
		}
		if _, ok := j.entries[id]; ok || pending[id] {
			continue
		}
		pending[id] = true
		at := j.buffer.Len()
		if err := appendRecord(&j.buffer, id, m); err != nil {
			return 0, fmt.Errorf("event %s: encode: %w", m.ID, err)
		}
		places = append(places, place{id, int64(at), j.buffer.Len() - at})
		if j.buffer.Len() >= writeBytes {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if len(places) > 0 {
		err = flush()
	}
	return j.written, err
}

// roll begins a new segment once all of the one before is on disk. The caller
// holds mu, or is the only one yet.
func (j *Journal) roll() error {
	number := 1
	if n := len(j.segments); n > 0 {
		number = j.segments[n-1].number + 1
		if err := j.segments[n-1].file.Sync(); err != nil {
			j.failed = err
			return err
		}
	}
	s, err := createSegment(j.dir, number)
	if err == nil {
		j.segments = append(j.segments, s)
	}
	return err
}

// sync returns once the disk has what was written up to there. One who waits
// for the disk waits for all who have written before it began.
func (j *Journal) sync(written int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= written {
		return nil
	}
	j.mu.Lock()
	err := j.failed
	if j.dir == nil {
		err = ErrClosed
	}
	var last *segment
	if err == nil {
		last, written = j.segments[len(j.segments)-1], j.written
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := last.file.Sync(); err != nil {
		j.mu.Lock()
		j.failed = err
		j.mu.Unlock()
		return err
	}
	j.synced = written
	return nil
}

// forget is trim where there is something to drop.
func (j *Journal) forget() error {
	j.mu.Lock()
	over := j.dir != nil && j.over()
	j.mu.Unlock()
	if !over {
		return nil
	}
	j.syncing.Lock() // of files that are closed
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dir == nil {
		return nil
	}
	return j.trim()
}

func (j *Journal) over() bool {
	return len(j.queue) > j.options.MaxEntries || j.bytes > j.options.MaxBytes
}

// trim drops the oldest entries until the journal is within its bounds, and
// deletes the segments that have none left.
func (j *Journal) trim() error {
	for j.over() {
		oldest := j.queue[0]
		j.queue = j.queue[1:]
		if j.entries[oldest.id] == oldest.entry {
			delete(j.entries, oldest.id)
		}
		j.bytes -= int64(oldest.size)
		oldest.in.live--
	}
	for len(j.segments) > 1 && j.segments[0].live == 0 {
		if err := j.segments[0].remove(); err != nil {
			return fmt.Errorf("drop the oldest entries: %w", err)
		}
		j.segments = j.segments[1:]
	}
	return nil
}

// Close releases the directory. Closing twice is closing once.
func (j *Journal) Close() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dir == nil {
		return nil
	}
	var errs []error
	for _, s := range j.segments {
		errs = append(errs, s.file.Close())
	}
	errs = append(errs, j.dir.Close()) // unlocks
	j.dir = nil
	return errors.Join(errs...)
}
