package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"codea1/consumers/execution/internal/sandboxtest"
)

// BenchmarkRun is the smallest job, define a function and call it eight times,
// without and with the imports that solutions usually begin with.
//
// The limit is fork, compile and run without anything else: the cpu-us/job of a
// Python that forks itself and runs source, about 1,050 on an idle machine. The rest
// is for typed values, a pid namespace and the pool.
//
// It depends more on the fork server's memory than on the job. A small page costs
// 0.07 us at fork and about as much at the child's end, and a page fault about 2 us.
// harness/pages.py has figures for each means to have fewer of both.
func BenchmarkRun(b *testing.B) {
	const imports = "import math\nimport re\nimport collections\nfrom typing import List, Dict, Optional\nfrom collections import Counter, defaultdict\n"
	for name, header := range map[string]string{"plain": "", "imports": imports} {
		for _, level := range levels {
			b.Run(name+"/"+string(level), func(b *testing.B) {
				p := openAt(b, level, Config{CacheBytes: -1})
				program := Program{Code: header + "def f(x):\n    return [x] * 3\n", EntryPoint: "f"}
				var calls []string
				for i := range 8 {
					calls = append(calls, fmt.Sprintf("f(%d)", i))
				}
				before := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := p.Run(b.Context(), program, calls); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
				b.ReportMetric(float64((sandboxtest.ChildrenCPU(b)+sandboxtest.CPU(b)-before).Microseconds())/float64(b.N), "cpu-us/job")
			})
		}
	}
}

// BenchmarkProcess is the job of BenchmarkRun the usual way: a file that holds
// function and asserts, and a new Python for it.
func BenchmarkProcess(b *testing.B) {
	python, err := findPython(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	source := "def f(x):\n    return [x] * 3\n"
	for i := range 8 {
		source += fmt.Sprintf("assert f(%d) == [%d, %d, %d]\n", i, i, i, i)
	}
	path := filepath.Join(b.TempDir(), "file.py")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, arguments := range map[string][]string{"python3": {path}, "python3 -I -S -B": {"-I", "-S", "-B", path}} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if out, err := exec.CommandContext(b.Context(), python.Executable, arguments...).CombinedOutput(); err != nil {
						b.Errorf("%v: %s", err, out)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
