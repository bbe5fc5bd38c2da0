package checkpoint

// expired returns the versions that are not kept, in ascending order. It keeps
// the last keepLast and, unless keepEvery is 0, each multiple of keepEvery.
// Version 0 is a multiple of every number and is always kept.
func expired(versions []int, keepLast, keepEvery int) []int {
	var old []int
	for _, v := range versions[:max(0, len(versions)-keepLast)] {
		if v != 0 && (keepEvery == 0 || v%keepEvery != 0) {
			old = append(old, v)
		}
	}
	return old
}
