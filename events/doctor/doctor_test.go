package doctor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Only a finding that a training needs makes the examination fail.
func TestPrint(t *testing.T) {
	t.Parallel()
	note := Finding{What: "GPU", Err: errors.New("none\nin sight")}
	for name, c := range map[string]struct {
		findings []Finding
		json     bool
		missing  string
		want     string
	}{
		"all there": {findings: []Finding{{What: "bus", Detail: "x", Needed: true}, note}, want: "ok    bus  x\nnote  GPU  none | in sight\n"},
		"missing": {
			findings: []Finding{note, {What: "bus", Detail: "x", Err: errors.New("no server"), Needed: true}},
			missing:  "1 of 2 examinations found something missing", want: "note     GPU  none | in sight\nMISSING  bus  no server\n",
		},
		"JSON": {findings: []Finding{note}, json: true, want: `{"detail":"none | in sight","result":"note","what":"GPU"}` + "\n"},
	} {
		var out strings.Builder
		err := Print(&out, c.json, c.findings)
		if out.String() != c.want || c.missing == "" && err != nil || c.missing != "" && (!errors.Is(err, ErrMissing) || err.Error() != c.missing) {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, out.String(), c.want)
		}
	}
}

// The disk of a runs directory is that of the nearest directory that exists.
func TestDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if f := Disk(filepath.Join(dir, "not", "yet")); f.Err != nil || !strings.HasPrefix(f.Detail, dir+" has ") {
		t.Errorf("%+v", f)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
