package literal

// packed is a value without its parts, which can only be compared and written. The
// parts of a list of small numbers need thirty times the memory of its text.
type packed struct {
	text, key     string
	nan, hashably bool
}

// Pack returns a value that equals v and has the same text, without v's parts.
func Pack(v Value) Value {
	return packed{Text(v), Key(v), v.hasNaN(), v.hashable()}
}

func (p packed) appendText(dst []byte) []byte { return append(dst, p.text...) }
func (p packed) appendKey(dst []byte) []byte  { return append(dst, p.key...) }
func (p packed) hasNaN() bool                 { return p.nan }
func (p packed) hashable() bool               { return p.hashably }
