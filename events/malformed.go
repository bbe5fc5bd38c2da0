package events

// MalformedError is returned by Reader.Next for a message that is no event: its
// headers are wrong, or they are those of another event than the place of the
// message says.
type MalformedError struct {
	Place  string // where the bus has it: a subject, or a topic with partition and offset
	Header string // its headers, a line each, up to MaxMalformedHeader bytes
	Data   []byte
	Err    error
}

// MaxMalformedHeader bounds MalformedError.Header.
const MaxMalformedHeader = 4 << 10

func (e *MalformedError) Error() string { return "no event at " + e.Place + ": " + e.Err.Error() }

func (e *MalformedError) Unwrap() error { return e.Err }

// AddHeader adds a line to Header.
func (e *MalformedError) AddHeader(name, value string) {
	line := name + ": " + value + "\n"
	e.Header += line[:min(len(line), MaxMalformedHeader-len(e.Header))]
}
