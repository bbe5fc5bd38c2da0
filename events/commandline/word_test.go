package commandline

import (
	"os/exec"
	"testing"
)

// A shell reads each word as the text that it was made from.
func TestWord(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"runs/first", "my runs/a", "it's", "$(id)", "a;b", "", "~", "ü"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Word(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q: the shell reads %s as %q, %v", text, Word(text), out, err)
		}
	}
	if Word("runs/first") != "runs/first" {
		t.Error("a plain path has quotes")
	}
}
