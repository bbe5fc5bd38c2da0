package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	"codea1/events/rundir"
)

// Bounds of the lists in a report.
const (
	reportTests  = 500
	reportGroups = 2000
)

// SaveReport writes the report of a run to a file. It replaces an old file in one
// step.
func SaveReport(path string, s *State) error {
	var page bytes.Buffer
	if err := WriteReport(&page, s); err != nil {
		return err
	}
	if err := rundir.WriteFile(path, page.Bytes(), rundir.FileMode); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// report is the data in a report: what the page otherwise asks the server for.
type report struct {
	State  Snapshot          `json:"state"`
	Book   bookView          `json:"book"`
	Groups groupsView        `json:"groups"`
	Whole  map[string]*Group `json:"whole"` // the groups of the examples
}

// The elements of a page that load a file.
var (
	styleElement  = regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)">`)
	scriptElement = regexp.MustCompile(`<script src="([^"]+)" defer></script>\n`)
	iconElement   = regexp.MustCompile(`<link rel="icon"[^>]*>\n`)
)

// WriteReport writes the page with the results of a run as one HTML file. A browser
// opens it from disk without a network: scripts, styles and data are in the file, and
// its content security policy allows nothing else. Texts of the run cannot become
// HTML.
func WriteReport(w io.Writer, s *State) error {
	r := report{
		State: s.Snapshot(), Book: s.Book.find(bookQuery{most: reportTests}), Groups: s.groups.find(0, "", reportGroups), Whole: map[string]*Group{},
	}
	for _, e := range s.examples.best {
		r.Whole[e.Group] = e.whole
	}
	return writeAlone(w, embedded("page/index.html"), "page/", r)
}

// writeAlone writes a page with its data, and with the styles and scripts that it
// names, which are in a folder.
func writeAlone(w io.Writer, page []byte, folder string, holds any) error {
	// Marshal writes the characters <, > and & as escapes, so data cannot end the
	// element that it is in.
	data, err := json.Marshal(holds)
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	page = iconElement.ReplaceAll(page, nil)
	var scripts, styleHashes, scriptHashes bytes.Buffer
	page = styleElement.ReplaceAllFunc(page, func(link []byte) []byte {
		return inline("style", embedded(folder+string(styleElement.FindSubmatch(link)[1])), &styleHashes)
	})
	page = scriptElement.ReplaceAllFunc(page, func(link []byte) []byte {
		scripts.Write(inline("script", embedded(folder+string(scriptElement.FindSubmatch(link)[1])), &scriptHashes))
		return nil
	})
	policy := fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src%s; style-src%s; base-uri 'none'; form-action 'none'">`,
		&scriptHashes, &styleHashes)
	page = bytes.Replace(page, []byte(`<meta charset="utf-8">`), []byte("<meta charset=\"utf-8\">\n"+policy), 1)
	at := bytes.LastIndex(page, []byte("</body>"))
	for _, part := range [][]byte{page[:at], []byte(`<script type="application/json" id="data">`), data, []byte("</script>\n"), scripts.Bytes(), page[at:]} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}

// inline returns an element with a text, and adds the hash of the text to the
// sources that the policy allows.
func inline(element string, text []byte, hashes *bytes.Buffer) []byte {
	sum := sha256.Sum256(text)
	fmt.Fprintf(hashes, " 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:]))
	return fmt.Appendf(nil, "<%s>%s</%s>\n", element, text, element)
}

// embedded returns an embedded file.
func embedded(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the names are in the embedded pages
	}
	return data
}
