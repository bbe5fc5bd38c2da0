package sandboxfusion

import (
	"testing"
	"time"

	"codea1/consumers/execution/sandbox"
)

// TestRemoteTime: the output of a job says how long each item took, which the limits of
// answers depend on.
func TestRemoteTime(t *testing.T) {
	t.Parallel()
	p := openPool(t, quick)
	config := p.Config()
	j := sandbox.Job{
		Kind: sandbox.JobCalls, Code: "import time\ndef f(x):\n time.sleep(x)\n return x", Entry: "f", Items: []string{"f(0.1)", "f(0)", "f('a')"},
		ValueBytes: config.ValueBytes, Each: config.CallTimeout, Budget: config.JobTimeout,
	}
	nonce := newNonce()
	program := (&client{config: config}).request(j, nonce)
	end, err := p.RunProgram(t.Context(), &sandbox.WholeProgram{Code: program.Code, Language: languagePython, Seconds: 60, StreamBytes: 1 << 20, FetchFiles: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	var a serverAnswer
	if err := a.read(j, nonce, end.Stdout); err != nil || len(a.Replies) != len(j.Items) {
		t.Fatalf("%+v, %v: %s", a, err, end.Stderr)
	}
	// A call may begin before the end of loading is noticed, but no time is lost
	// between the two.
	if took := a.LoadTook + a.Replies[0].Took; took < 100*time.Millisecond || took > time.Minute {
		t.Errorf("loading and a call that sleeps for 0.1 s took %v", took)
	}
	for _, r := range a.Replies {
		if r.Took <= 0 {
			t.Errorf("%+v", r)
		}
	}
}
