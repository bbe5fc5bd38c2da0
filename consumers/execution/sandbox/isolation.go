package sandbox

import "fmt"

// Level says how strongly a candidate is isolated from the machine.
type Level string

// The levels, strongest first. At each level, a child has limits on memory, files,
// processes and time, and inherits no descriptor except its job socket.
const (
	// LevelIsolated: namespaces for users, mounts, processes, network, IPC,
	// host name and cgroups; a root directory in memory with Python read-only
	// and a small scratch directory; no /proc; an unprivileged user without
	// capabilities; a system call filter; a pid namespace per child.
	LevelIsolated Level = "isolated"
	// LevelConfined: the system call filter, and Landlock where the kernel has
	// it. A candidate has no network, starts no other program and cannot read
	// other processes' memory. With Landlock it reads Python's files only, writes
	// in its own directory only and, from version 6 on (Linux 6.12), signals only
	// itself and the processes that it starts. The numbers of processes and of new
	// files are the machine's: a candidate can count in them. Without Landlock it may read and
	// write the files of the pool's user and signal that user's processes.
	LevelConfined Level = "confined"
	// LevelOpen: the limits only. For code that is trusted.
	LevelOpen Level = "open"
)

// landlockSignals is the first version of Landlock that restricts signals.
const landlockSignals = 6

func (l Level) describe(landlock int) string {
	switch {
	case l == LevelIsolated:
		return "namespaces, a root directory in memory, no capabilities, system calls filtered"
	case l == LevelOpen:
		return "limits only"
	case landlock == 0:
		return "system calls filtered; the kernel has no Landlock, so files and signals are the user's"
	case landlock < landlockSignals:
		return fmt.Sprintf("system calls filtered; files by Landlock version %d; signals are the user's", landlock)
	}
	return fmt.Sprintf("system calls filtered; files and signals by Landlock version %d", landlock)
}

var levels = []Level{LevelIsolated, LevelConfined, LevelOpen}

const levelRemedy = "run as root, or allow unprivileged user namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces, AppArmor's apparmor_restrict_unprivileged_userns); or accept a weaker level with --sandbox-level (CODEA1_SANDBOX_LEVEL): confined or open"

// unprivilegedID is the user and group of an isolated candidate: inside its
// namespace, and also outside where the pool runs as root.
const unprivilegedID = 65534

// notGivenError says why the machine does not give a level.
type notGivenError struct {
	level  Level
	reason string
}

func (e *notGivenError) Error() string { return fmt.Sprintf("no level %s: %s", e.level, e.reason) }
