package badgerdir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
)

// Badger ends the process on a truncated table, and deletes the tables that its
// manifest does not name: after a truncation of the manifest, the newest ones. So
// tables and manifest are checked before Badger opens them.

// leftOut is the newest table that the manifest does not name; its name is empty if
// there is none.
type leftOut struct {
	name    string
	version uint64 // of the newest transaction in it
}

// checkTables reads the end of every table. A table that the manifest names must be
// whole. A killed writer may leave others, with content that is also in named
// tables or in a write-ahead log.
func checkTables(dir string, o badger.Options) (left leftOut, err error) {
	named, err := namedTables(dir, o)
	if err != nil {
		return left, nil //nolint:nilerr // Badger reports a damaged manifest and changes nothing
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"+TableSuffix))
	if err != nil {
		return left, err
	}
	for _, path := range paths {
		name := filepath.Base(path)
		id, err := strconv.ParseUint(strings.TrimSuffix(name, TableSuffix), 10, 64)
		if err != nil {
			continue
		}
		version, err := tableVersion(path)
		_, isNamed := named[id]
		switch {
		case isNamed && err != nil:
			return left, fmt.Errorf("table %s: %w", name, err)
		case !isNamed && err == nil && version > left.version:
			left = leftOut{name, version}
		}
	}
	return left, nil
}

func namedTables(dir string, o badger.Options) (_ map[uint64]badger.TableManifest, err error) {
	file, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	manifest, _, err := badger.ReplayManifestFile(file, 0, o)
	return manifest.Tables, err
}

var errTable = errors.New("is cut off or damaged")

// tableVersion returns the version of the newest transaction in a table. A table
// ends with its index, the index's length, a checksum of the index, and the
// checksum's length. Lengths have four bytes.
func tableVersion(path string) (version uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	take := func(n int64) []byte {
		if end -= n; err == nil && end < 0 {
			err = errTable
		}
		if err != nil {
			return nil
		}
		b := make([]byte, n)
		_, err = file.ReadAt(b, end)
		return b
	}
	length := func() int64 {
		b := take(4)
		if err != nil {
			return 0
		}
		return int64(binary.BigEndian.Uint32(b))
	}
	sum := take(length())
	index := take(length())
	if err != nil {
		return 0, err
	}
	checksum, ok := parseChecksum(sum)
	if !ok || len(index) == 0 || y.VerifyChecksum(index, checksum) != nil {
		return 0, errTable
	}
	return fb.GetRootAsTableIndex(index, 0).MaxVersion(), nil
}

// parseChecksum decodes the protocol buffer of a checksum: an algorithm as field 1
// and a sum as field 2, both varints. Zero fields are absent.
func parseChecksum(b []byte) (*pb.Checksum, bool) {
	var checksum pb.Checksum
	for len(b) > 1 {
		field := b[0]
		value, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return nil, false
		}
		b = b[1+n:]
		switch {
		case field == 1<<3 && value <= uint64(pb.Checksum_XXHash64):
			checksum.Algo = pb.Checksum_Algorithm(value)
		case field == 2<<3:
			checksum.Sum = value
		default:
			return nil, false
		}
	}
	return &checksum, len(b) == 0
}
