package events

// The payloads that a group is made of are written and read by hand, an order
// of magnitude faster than by reflection: a wired payload says the same bytes
// as its struct tags do. Tests hold the one to the other.
//
// Reading takes only what writing gives: the fields in their order, nothing
// else. Where it finds anything besides, the general decoder reads the payload
// instead, and says what is wrong with it, if something is.
type wired interface {
	write(w *writer)
	read(r *reader)
}
