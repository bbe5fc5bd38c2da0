package replaytest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and fails if a goroutine is left.
func Main(m *testing.M) {
	// glog, which a cache of Badger imports, flushes for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}
