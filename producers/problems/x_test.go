package problems

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	t0 := time.Now()
	a, b := Builtin()
	fmt.Println(len(a), len(b), time.Since(t0))
	min, mt := 99, 0
	for _, p := range b {
		if len(p.Buggy) < min {
			min = len(p.Buggy)
		}
		mt += len(p.Tests)
	}
	fmt.Println(min, mt/len(b))
	for _, role := range []string{"code", "test"} {
		t0 = time.Now()
		s, _ := Corpus(role, 1, 60000, DefaultMix())
		f, _ := os.Create("/tmp/corpus-" + role + ".jsonl")
		e := json.NewEncoder(f)
		e.SetEscapeHTML(false)
		n := 0
		for r := range s {
			e.Encode(r)
			n++
			if n%4000 == 0 {
				fmt.Println(r.Prompt)
				fmt.Println(r.Response)
			}
		}
		f.Close()
		fmt.Println(time.Since(t0))
	}
	fmt.Printf("%+v\n", b[3])
}
