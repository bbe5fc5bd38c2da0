//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// decide runs the filter on a call. The virtual machine reads words in network
// order where the kernel reads them in its own, so the call is laid out so.
func decide(t *testing.T, namespaces bool, arch, number uint32, arguments ...uint32) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(instructions(namespaces))
	if err != nil {
		t.Fatal(err)
	}
	call := make([]byte, 64)
	binary.BigEndian.PutUint32(call[offsetNumber:], number)
	binary.BigEndian.PutUint32(call[offsetArch:], arch)
	for i, a := range arguments {
		binary.BigEndian.PutUint32(call[offsetArgument+8*i:], a)
	}
	verdict, err := vm.Run(call)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}

func TestFilter(t *testing.T) {
	const (
		allow   = uint32(unix.SECCOMP_RET_ALLOW)
		refuse  = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
		unknown = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
		kill    = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	)
	for _, c := range []struct {
		name      string
		number    uint32
		arguments []uint32
		want      uint32
	}{
		{"read", unix.SYS_READ, nil, allow},
		{"fork by clone", unix.SYS_CLONE, []uint32{uint32(unix.SIGCHLD) | unix.CLONE_CHILD_SETTID | unix.CLONE_CHILD_CLEARTID}, allow},
		{"thread", unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD}, allow},
		{"clone with a user namespace", unix.SYS_CLONE, []uint32{uint32(unix.SIGCHLD) | unix.CLONE_NEWUSER}, refuse},
		{"clone with a pid namespace", unix.SYS_CLONE, []uint32{unix.CLONE_NEWPID}, refuse},
		{"memory of its own", unix.SYS_MMAP, []uint32{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, allow},
		{"a file's memory, shared", unix.SYS_MMAP, []uint32{0, 4096, 3, unix.MAP_SHARED}, allow},
		{"shared memory without a file", unix.SYS_MMAP, []uint32{0, 4096, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, refuse},
		{"the same, validated", unix.SYS_MMAP, []uint32{0, 4096, 3, unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE}, refuse},
		{"clone3", unix.SYS_CLONE3, nil, unknown},
		{"unshare a pid namespace", unix.SYS_UNSHARE, []uint32{unix.CLONE_NEWPID}, allow},
		{"mount the directory", unix.SYS_MOUNT, []uint32{0, 0, 0, unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME}, allow},
		{"mount something else", unix.SYS_MOUNT, []uint32{0, 0, 0, unix.MS_BIND}, refuse},
		{"unmount it", unix.SYS_UMOUNT2, []uint32{0, unix.MNT_DETACH}, allow},
		{"unmount by force", unix.SYS_UMOUNT2, []uint32{0, unix.MNT_FORCE}, refuse},
		{"its own limits", unix.SYS_PRLIMIT64, []uint32{0, unix.RLIMIT_AS}, allow},
		{"the limits of process 1", unix.SYS_PRLIMIT64, []uint32{1, unix.RLIMIT_AS}, refuse},
		{"duplicate", unix.SYS_FCNTL, []uint32{0, unix.F_DUPFD_CLOEXEC}, allow},
		{"set whether it blocks", unix.SYS_FCNTL, []uint32{0, unix.F_SETFL, unix.O_NONBLOCK}, allow},
		{"lock a part", unix.SYS_FCNTL, []uint32{0, unix.F_SETLK}, allow},
		{"signal about a file", unix.SYS_FCNTL, []uint32{0, unix.F_SETSIG, uint32(unix.SIGKILL)}, refuse},
		{"receiver of the signal", unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN, 1}, refuse},
		{"the same, extended", unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN_EX}, refuse},
		{"lease", unix.SYS_FCNTL, []uint32{0, unix.F_SETLEASE}, refuse},
		{"notify", unix.SYS_FCNTL, []uint32{0, unix.F_NOTIFY}, refuse},
		{"write hint", unix.SYS_FCNTL, []uint32{0, unix.F_SET_RW_HINT}, refuse},
		{"write hint of the description", unix.SYS_FCNTL, []uint32{0, unix.F_SET_FILE_RW_HINT}, refuse},
		{"open", unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDWR | unix.O_CREAT | unix.O_DIRECTORY}, allow},
		{"open without a name", unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDWR | unix.O_TMPFILE}, refuse},
		{"send", unix.SYS_SENDTO, []uint32{0, 0, 1, unix.MSG_DONTWAIT}, allow},
		{"send out of band", unix.SYS_SENDTO, []uint32{0, 0, 1, unix.MSG_OOB | unix.MSG_DONTWAIT}, refuse},
		{"receive out of band", unix.SYS_RECVFROM, []uint32{0, 0, 1, unix.MSG_OOB}, refuse},
		{"receive a message out of band", unix.SYS_RECVMSG, []uint32{0, 0, unix.MSG_OOB}, refuse},
		{"unshare that and more", unix.SYS_UNSHARE, []uint32{unix.CLONE_NEWPID | unix.CLONE_NEWNS}, refuse},
		{"unshare nothing", unix.SYS_UNSHARE, []uint32{0}, refuse},
		{"setns to any kind", unix.SYS_SETNS, []uint32{5, 0}, refuse},
		{"setns to a pid namespace", unix.SYS_SETNS, []uint32{5, unix.CLONE_NEWPID}, allow},
		{"pair of sockets", unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX}, allow},
		{"pair of another family", unix.SYS_SOCKETPAIR, []uint32{unix.AF_TIPC}, refuse},
		{"is a terminal", unix.SYS_IOCTL, []uint32{1, unix.TCGETS}, allow},
		{"types into a terminal", unix.SYS_IOCTL, []uint32{1, unix.TIOCSTI}, refuse},
		{"name a thread", unix.SYS_PRCTL, []uint32{unix.PR_SET_NAME}, allow},
		{"keep capabilities", unix.SYS_PRCTL, []uint32{unix.PR_SET_KEEPCAPS}, refuse},
		{"another filter", unix.SYS_SECCOMP, nil, refuse},
	} {
		if got := decide(t, true, architecture, c.number, c.arguments...); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
	for _, number := range []uint32{
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT4,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_KCMP,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE,
		unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN, unix.SYS_MEMFD_CREATE, unix.SYS_MLOCK, unix.SYS_USERFAULTFD,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
		unix.SYS_PERSONALITY, unix.SYS_SETHOSTNAME, unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SETGID, unix.SYS_SETUID, unix.SYS_SETGROUPS,
		unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG, unix.SYS_INOTIFY_INIT1, unix.SYS_FSETXATTR, unix.SYS_SETXATTR,
		unix.SYS_IOPRIO_SET, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD,
		unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_TIMER_CREATE, unix.SYS_OPENAT2,
		unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_SETUP, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_INIT_MODULE, unix.SYS_REBOOT, unix.SYS_MKNODAT, unix.SYS_FCHOWNAT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, 999,
	} {
		for _, namespaces := range []bool{true, false} {
			if got := decide(t, namespaces, architecture, number); got != refuse {
				t.Errorf("call %d: got %#x, want it refused", number, got)
			}
		}
	}
	for _, c := range forkServerOnly { // a confined candidate of root has the capabilities
		if got := decide(t, false, architecture, c.number, slices.Repeat(c.values, 4)...); got != refuse {
			t.Errorf("call %d without namespaces: got %#x, want it refused", c.number, got)
		}
	}
	if got := decide(t, true, unix.AUDIT_ARCH_I386, unix.SYS_READ); got != kill {
		t.Errorf("a call of 32 bit code: got %#x", got)
	}
	if got := decide(t, true, architecture, foreignNumbers|unix.SYS_READ); got != kill {
		t.Errorf("an x32 call: got %#x", got)
	}
}

func TestProgramIsShort(t *testing.T) {
	program, err := Program(true)
	if err != nil {
		t.Fatal(err)
	}
	const most = 4096 // of the kernel
	if n := len(program) / 8; len(program)%8 != 0 || n > most/4 {
		t.Errorf("%d instructions", n)
	}
}
