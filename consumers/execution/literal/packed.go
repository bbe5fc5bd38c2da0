package literal

// packed is a value that is compared and written, and no longer looked into. Its
// parts are gone: those of a list of small numbers weigh thirty times their text.
type packed struct {
	text, key     string
	nan, hashably bool
}

// Pack returns a value that equals v and has its text, and holds nothing else.
func Pack(v Value) Value {
	return packed{Text(v), Key(v), v.hasNaN(), v.hashable()}
}

func (p packed) appendText(dst []byte) []byte { return append(dst, p.text...) }
func (p packed) appendKey(dst []byte) []byte  { return append(dst, p.key...) }
func (p packed) hasNaN() bool                 { return p.nan }
func (p packed) hashable() bool               { return p.hashably }
