package gpuworker

// expired returns which of the versions, in ascending order, are not kept:
// kept are version 0, the last keepLast, and every multiple of keepEvery
// unless that is 0.
func expired(versions []int, keepLast, keepEvery int) []int {
	var old []int
	for _, v := range versions[:max(0, len(versions)-keepLast)] {
		if v != 0 && (keepEvery == 0 || v%keepEvery != 0) {
			old = append(old, v)
		}
	}
	return old
}
