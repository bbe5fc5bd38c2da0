package replaytest

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and fails if a goroutine is left.
func Main(m *testing.M) {
	// Tests of a rebuild wait for a bus that has no more events. The flag -parallel
	// overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	// glog, which a cache of Badger imports, flushes for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}
