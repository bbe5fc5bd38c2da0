// Package sandbox runs calls on Python programs that models wrote, isolated from
// the machine and from each other.
//
// It owns the Pool, the Python fork servers, their isolation and the cache of
// executions. It must not know groups, tests or verdicts: those are package
// execution.
//
// These measures keep a candidate from cheating and from doing harm:
//
//   - A candidate's process receives calls, never the expected values. It
//     sends each value back as literal text (package literal) over a socket of
//     its own. Its standard output is discarded.
//   - Every program runs in a fresh child of a fork server that never reads a
//     job, so a child inherits nothing of another candidate. Fork servers live
//     in namespaces of their own behind a system call filter (package seccomp).
//     A machine that does not allow that is refused, unless the user accepts a
//     weaker Level by name.
//   - A candidate and the processes that it starts stay within their memory,
//     number of processes and share of the processor: by a control group around
//     the fork server where the machine allows one (cgroup v2 or v1), else by a
//     look at the processes every 20 ms (isolation_bounds.go). The fork server
//     survives a candidate that is over the limit.
//   - The values that a program returns are bounded, each and all together, and
//     so are the memory and the work that they cost the pool.
//   - A candidate starts with an empty directory, with descriptors that no other one
//     had, and with the same times on them.
//   - A child that hangs or dies is ended from outside with all that it started,
//     and the calls after the failed one run in a fresh child. A program that does
//     not load again has raised in the rest of its calls.
//   - Load on the machine changes no outcome: the time for which a child waited
//     for a core is added to its limits (job_time.go).
//   - A sandbox that dies is an *Error, retried and never an outcome. A program that
//     ends the sandbox in each try has crashed if a harmless program runs there: no
//     program can have itself masked in place of scored. The next pool removes the
//     files and groups that a killed pool left behind.
//
// `codea1 sandbox check` prints which of these hold on a machine and tries to
// break out. Two things are not prevented at LevelConfined: filling the disk of
// the candidate's directory and, without Landlock, the accesses that the comment
// of LevelConfined names.
//
// Any CPython from 3.9 on works (python.go); a candidate has the semantics of
// that version. PyPy, free-threaded builds and debug builds are refused: they
// lack the allocator that harness/pages.py lays out.
//
// Memory management is most of the cost of a small job: fork takes a fifth, the
// pages that the child changes a fifth and its end a quarter. So
// harness/pages.py lays out the fork server's memory for forking, and
// harness/child.py runs the harness once before the first fork. To be woken for
// each frame is expensive too: socket.go waits for the end of a conversation.
//
// # Where things are
//
//	program.go          run calls on a program: start reading here
//	wholeprogram.go     run a whole program with its input and output
//	pool.go             slots, Backend; cache.go remembers executions
//	forkservers.go      the Backend of this machine; forkserver.go is one fork server
//	children.go         does a job in children; job.go is a job and its replies
//	conversation.go     the protocol with a child; socket.go its socket
//	job_time.go         time limits
//	call.go             which calls go to a child as values
//	isolation*.go       levels, namespaces, control groups, the watch
//	python.go           which Python
//	check.go            tries to break out
//	harness/            the Python side; harness/isolation.py isolates a fork server
//	testdata/redteam/   attacks that the tests run
package sandbox
