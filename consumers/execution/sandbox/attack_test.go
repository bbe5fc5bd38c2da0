package sandbox

import (
	"runtime"
	"testing"

	"codea1/consumers/execution/internal/sandboxtest"
)

// TestAnswersHoldLittle: a pool keeps a bounded part of a program's answers, however
// large each is and with any frames that the program makes up.
func TestAnswersHoldLittle(t *testing.T) {
	const most = 128 << 20
	calls := sandboxtest.IfThorough(60, 30) // of 5 MiB and more
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
