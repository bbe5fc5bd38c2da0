package dashboard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const hostile = `</script><img src=x onerror="evil()">`

// overlaid returns the page of two configurations with hostile texts.
func overlaid(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	reported(t).View(func(s *State) {
		o := &Overlay{
			Title: hostile, Headline: "2 runs" + hostile,
			Tables: []OverlayTable{{Caption: "Figures" + hostile, Note: hostile, Head: []string{"", hostile}, Rows: [][]string{{"a", "1.0%"}, {hostile, "2.0%"}}}},
			Lines:  []OverlayLine{{Name: "a", Runs: []*State{s, s}}, {Name: hostile, Runs: []*State{s}}, {Name: "no run yet"}},
		}
		if err := WriteOverlay(&b, o); err != nil {
			t.Fatal(err)
		}
	})
	return b.String()
}

func TestOverlayLoadsNothing(t *testing.T) {
	text := overlaid(t)
	if overlaid(t) != text {
		t.Error("two pages of one experiment differ")
	}
	body := withoutScripts(text)
	for _, word := range []string{"http:", "https:", "<link", "<img", "url(", "NaN", "ZgotmplZ"} {
		if strings.Contains(body, word) {
			t.Errorf("%s in the page", word)
		}
	}
	if !strings.Contains(body, "default-src 'none'") {
		t.Error("the content security policy allows a browser to load more")
	}
	if strings.Count(text, hostile) > 0 {
		t.Error("a hostile text is not escaped")
	}
}

// TestOverlayInABrowser opens a page from disk.
func TestOverlayInABrowser(t *testing.T) {
	browser := startChrome(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(overlaid(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	browser.open("file://" + path)
	browser.until(`document.querySelectorAll('.chart canvas').length >= 8`)
	for selector, want := range map[string]string{
		"#title": hostile, "caption": "Figures" + hostile, "tbody tr:nth-child(2) td": hostile,
		".charts figure figcaption":                                      "Held-out problems: Code LLM avg@k",
		".charts figure .u-legend tr:nth-child(3)  .u-marker + .u-label": hostile,
	} {
		if got := browser.eval(fmt.Sprintf(`document.querySelector(%q)?.textContent`, selector)); got != want {
			t.Errorf("%s: the page says %q, want %q", selector, got, want)
		}
	}
	problems, requests := browser.seen()
	for _, p := range problems {
		t.Errorf("the page had a problem: %s", p)
	}
	for _, url := range requests {
		if url != "file://"+path && url != "about:blank" {
			t.Errorf("the page asked for %s", url)
		}
	}
}
