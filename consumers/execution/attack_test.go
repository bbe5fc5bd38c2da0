package execution

import (
	"runtime"
	"testing"

	"codea1/events"
)

// TestAnswersHoldLittle: what a pool keeps of a program's answers is bounded, however
// large each is and whatever frames the program makes up.
func TestAnswersHoldLittle(t *testing.T) {
	const calls, most = 60, 128 << 20
	for name, code := range map[string]string{
		"long messages": "import os, struct\ntext = b'x' * (5 << 20)\nframe = b'R' + struct.pack('<I', len(text)) + text\ndef send(frame):\n while frame: frame = frame[os.write(3, frame):]\nsend(b'L' + bytes(4))\nwhile True: send(frame)",
		"many values":   "import os, struct\ntext = b'[' + b'0,' * (1 << 19) + b']'\nframe = b'V' + struct.pack('<I', len(text)) + text\ndef send(frame):\n while frame: frame = frame[os.write(3, frame):]\nsend(b'L' + bytes(4))\nwhile True: send(frame)",
		"dear keys":     "import os, struct\ntext = b'[' + b'1e308,' * (1 << 17) + b']'\nframe = b'V' + struct.pack('<I', len(text)) + text\ndef send(frame):\n while frame: frame = frame[os.write(3, frame):]\nsend(b'L' + bytes(4))\nwhile True: send(frame)",
	} {
		t.Run(name, func(t *testing.T) {
			p := openPool(t, Config{Workers: 1, CacheBytes: 1 << 30})
			asked := make([]string, calls)
			for i := range asked {
				asked[i] = "0"
			}
			before := heap()
			report, err := p.Run(t.Context(), Program{Code: code}, asked)
			if err != nil {
				t.Fatal(err)
			}
			if held := heap() - before; held > most {
				t.Errorf("%d MiB are held", held>>20)
			}
			runtime.KeepAlive(report)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestLargeValuesInScripts: a program whose values are too many for a script's process
// fails the script; it is no failure of the sandbox, and no other program's affair.
func TestLargeValuesInScripts(t *testing.T) {
	p := openPool(t, quick)
	const test = "def check(c):\n for i in range(150): assert len(c(i)) != 9\n"
	for code, want := range map[string]events.Verdict{
		"def f(x): return 'a'":                              events.VerdictPass,
		"def f(x): return str(x) + '\\U0001f600' * 400_000": events.VerdictRaised,
	} {
		verdicts, err := p.Check(t.Context(), code, "f", []string{test, test + "#"})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verdicts {
			if v.Verdict != want || v.InProcess {
				t.Errorf("%s: got %+v, want %s", code, v, want)
			}
		}
	}
}
