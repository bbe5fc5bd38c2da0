package commandline

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion prints the script with which a shell completes command lines.
type Completion struct {
	Shell string `arg:"" help:"The shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Completions are the lines for the startup file of each shell.
var Completions = map[string]string{
	"bash": "complete -o default -C 'codea1 complete' codea1\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -C 'codea1 complete' codea1\n",
	"fish": "complete -c codea1 -a '(COMP_LINE=(commandline -cp | string collect) codea1 complete)'\n",
}

// Run prints the lines.
func (c *Completion) Run(out io.Writer) error {
	_, err := io.WriteString(out, Completions[c.Shell])
	return err
}

// Complete prints the words that can follow in the line of COMP_LINE. Shells
// call it.
type Complete struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Ignored: bash appends the program and two words."`
}

// Run prints one word per line.
func (Complete) Run(out io.Writer, ctx *kong.Context) error {
	for _, word := range Candidates(ctx.Model.Node, os.Getenv("COMP_LINE")) {
		if _, err := fmt.Fprintln(out, word); err != nil {
			return err
		}
	}
	return nil
}

// Candidates returns the commands, flags and values that the last word of a line can
// become.
func Candidates(node *kong.Node, line string) []string {
	words := strings.Fields(line + "|")
	current := strings.TrimSuffix(words[len(words)-1], "|")
	var all []string
	for i, word := range words[:len(words)-1] {
		if j := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word && !n.Hidden }); i > 0 && j >= 0 {
			node = node.Children[j]
		}
	}
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, child.Name)
		}
	}
	for _, flags := range node.AllFlags(true) {
		for _, flag := range flags {
			if name := "--" + flag.Name; name == words[max(len(words)-2, 0)] && flag.Enum != "" {
				all = flag.EnumSlice()
			}
		}
	}
	if strings.HasPrefix(current, "-") {
		all = nil
		for _, flags := range node.AllFlags(true) {
			for _, flag := range flags {
				all = append(all, "--"+flag.Name)
			}
		}
	}
	all = slices.DeleteFunc(all, func(word string) bool { return !strings.HasPrefix(word, current) })
	slices.Sort(all)
	return slices.Compact(all)
}
