// Package execution runs Python that models wrote and says what it did.
//
// It owns the sandbox (a Pool of Python fork servers), the reading of test
// suites, the validation of tests against the ground truth, and the verdicts.
// It must not know what a verdict is worth: that is package rewards.
//
// What keeps a candidate from buying a verdict:
//
//   - A candidate's process receives calls, never what they should return. It
//     sends each value back as literal text (package literal) over a socket of
//     its own, and the value is compared here, in Go, with Python's equality.
//     Its standard output goes nowhere and is never read.
//   - A generated test computes its arguments and its answer apart from any program,
//     with nothing but built-in functions and methods of literals (suites.py): all
//     programs get the same arguments, and no test reaches into one.
//   - A test that is more than calls and values, a script, runs in a process of
//     its own that never holds the program; its calls are made for it.
//   - Every program runs in a fresh child of a fork server that never saw a
//     job, so there is nothing of another candidate to find. Fork servers live
//     in namespaces of their own behind a system call filter (package seccomp);
//     a machine that does not give that is refused unless the user accepts a
//     weaker Level by name.
//   - A candidate with all that it starts stays within its memory, number of
//     processes and share of the processor: by a control group around its fork
//     server where the machine lets us make one (cgroup v2 or v1), else by a look
//     at its processes every 20 ms (isolation_bounds.go). The fork server outlives
//     what is over the limit.
//   - What a program sends back is bounded, each value and all together, and so is
//     what the pool keeps of it and works on it.
//   - A child that hangs or dies is ended from outside with all it started,
//     and the calls after the one it failed on run in a fresh child.
//   - What others do to the machine is no verdict: the time for which a child had to
//     wait for a core is put on top of its limits (job_time.go).
//   - A sandbox that dies is a *SandboxError, retried and never a verdict. What
//     a pool that was killed leaves behind, the next one removes.
//
// `codea1 sandbox check` says what of this is in force on a machine and tries
// to break out. Not kept from a candidate at LevelConfined: filling the disk
// that its directory is on, and, without Landlock, what LevelConfined says.
//
// Any CPython from 3.9 on will do (python.go); each candidate means there what
// its version makes of it. PyPy, free-threaded builds and debug builds are
// refused: none has the allocator that the fork server's memory is laid out for.
//
// What a job costs is memory management: of the time of a small one, fork takes
// a fifth, the pages that the child changes a fifth and its end a quarter.
// So the fork server's memory is laid out for forking (harness/pages.py), which
// is why modules that a program does not import cost it nothing, and children
// run what was rehearsed before (harness/child.py). Being woken for each answer
// is dear, too: the pool waits for a child's end and looks at what came every two
// milliseconds, until it says nothing (socket.go).
//
// Start reading at program.go (run calls on a program), then group.go (a group
// of answers and suites), golden.go (a problem's own tests) and apart.go (test
// scripts). All of them give jobs to a backend (backend.go): the fork servers of
// this machine, or a SandboxFusion server (remote.go), where every program is a
// request of its own that holds its calls and no expectation. Below them:
// pool.go hands out fork servers, job.go does a job in its children, conversation.go
// talks to one of them by way of socket.go, job_time.go says for how long, call.go
// which calls it gets as values, zygote.go is one fork server, isolation.go names
// the levels, directory.go keeps what a pool has on disk, cache.go remembers
// executions, and harness holds the Python side, where isolation.py shuts a fork server off. Beside them: grading.go
// and serve.go are the sandbox for anyone, check.go tries to break out of it, and
// testdata/redteam holds the attacks that it is held against.
package execution
