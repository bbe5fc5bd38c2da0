package outbox_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/outbox"
)

// victimEnv holds the directory of a writer process.
const victimEnv = "CODEA1_OUTBOX_VICTIM"

// victim puts one message after another and prints which ones are safe, until
// it is killed.
func victim(dir string) {
	o, err := outbox.Open(dir, outbox.Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		m := victimMessage(i)
		if err := o.Put([]events.Message{m}); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("put", i)
	}
}

func victimMessage(i int) events.Message {
	return eventstest.Encode(eventstest.CodeSampled(eventstest.Posed("r1", 1+i/eventstest.Groups, i%eventstest.Groups)))
}

func TestKilledOutboxLosesNothingItPromised(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		promised := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "error "); ok {
				t.Fatal(rest)
			}
			if _, err := fmt.Sscanf(lines.Text(), "put %d", &promised); err != nil {
				t.Fatal(err)
			}
			if promised == 20*(round+1) {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}

		o := open(t, dir, outbox.Options{})
		for i := range promised + 1 {
			m := victimMessage(i)
			if !has(t, o, &m) {
				t.Errorf("round %d: message %d of %d is lost", round, i, promised)
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
