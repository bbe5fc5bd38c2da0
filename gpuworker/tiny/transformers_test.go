package tiny

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"testing"

	"codea1/gpuworker"
)

var update = flag.Bool("update", false, "rewrite testdata/go")

// TestLikeTransformers compares with Hugging Face, which loaded testdata/go and
// wrote testdata/python; see testdata/make_expected.py.
func TestLikeTransformers(t *testing.T) {
	if *update {
		if err := os.RemoveAll("testdata/go"); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("testdata/go", 0o755); err != nil {
			t.Fatal(err)
		}
		small := shape
		small.Hidden, small.HeadSize, small.MLP = 16, 4, 24
		if err := newTestEngine(t, small, 9).Save(t.Context(), "testdata/go"); err != nil {
			t.Fatal(err)
		}
		t.Skip("now run testdata/make_expected.py")
	}
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Checkpoint string
		Messages   []gpuworker.Message
		IDs        []int32
		LogProbs   []float64 `json:"log_probs"`
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 6 {
		t.Fatalf("%d cases, not 6", len(cases))
	}
	for i, c := range cases {
		e, err := Open("testdata/" + c.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := e.EncodePrompt(c.Messages)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("case %d: the chat encodes to\n%v, with transformers to\n%v", i, ids, c.IDs)
		}
		got, err := e.LogProbs(t.Context(), gpuworker.Current, []gpuworker.Sequence{{Prompt: c.IDs[:1], Tokens: c.IDs[1:]}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for j, want := range c.LogProbs {
			if math.Abs(float64(got[0][j])-want) > 1e-5 {
				t.Errorf("case %d, token %d: log-prob %.7f, with transformers %.7f", i, j+1, got[0][j], want)
			}
		}
	}
}
