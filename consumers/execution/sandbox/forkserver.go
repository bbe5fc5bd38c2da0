package sandbox

import (
	"bufio"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"codea1/consumers/execution/sandbox/seccomp"
)

//go:embed harness
var harness embed.FS

const (
	startTimeout = 30 * time.Second // for the fork server or a child to begin
	endTimeout   = 30 * time.Second // for the fork server to end a child

	// scratchFiles is how many files of the largest size the private directory
	// of an isolated fork server holds; they count as memory.
	scratchFiles = 16
)

// forkServer is one Python fork server. It has at most one child at a time, which
// it forks before there is a job for it. It serves one goroutine at a time.
// harness/forkserver.py describes its protocol.
type forkServer struct {
	command   *exec.Cmd
	control   *net.UnixConn
	directory string // of its candidates, on this machine
	stderr    *tail
	bounds    bounds
	group     *controlGroup // nil where there are no control groups
	next      *jobSocket    // of the child that waits for the next job; nil if there is none
	frames    *bufio.Reader // of the running child
	owing     bool          // the fork server has not yet sent the status of the last child

	landlock int // version of Landlock for the children; 0: none
}

// setup is the input that a fork server reads from standard input.
type setup struct {
	// Name and source of modules, in the order of their imports.
	FirstModules [][2]string `json:"first_modules"` // for isolation
	Modules      [][2]string `json:"modules"`       // for serving

	Preload   []string         `json:"preload"`
	Path      []string         `json:"path"`
	Limits    map[string]int64 `json:"limits"`
	Directory string           `json:"directory"`

	Level        Level    `json:"level"`
	Filter       string   `json:"filter"`  // struct sock_filter in hexadecimal
	Visible      []string `json:"visible"` // paths of the machine that the private root shows
	Scratch      string   `json:"scratch"` // the private directory for files, in that root
	ScratchBytes int64    `json:"scratch_bytes"`
	Varied       bool     `json:"varied"`  // see Job
	Grouped      bool     `json:"grouped"` // the memory limit is the fork server's and its children's together
	UID          int      `json:"uid"`     // as seen inside
}

// startForkServer starts a fork server that works in the given directory. The error
// is a *notGivenError where the machine does not give the level.
func startForkServer(python interpreter, directory string, level Level, config Config, bounds bounds, varied bool) (_ *forkServer, err error) {
	control, theirs, err := controlSocket()
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	settings, err := newSetup(python, directory, level, config)
	settings.Grouped, settings.Varied = bounds.groups != nil, varied
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	input, err := json.Marshal(settings)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	f := &forkServer{control: control, directory: directory, stderr: new(tail), bounds: bounds, frames: bufio.NewReaderSize(nil, 16<<10)}
	f.command = exec.Command(python.Executable, "-S", "-B", "-c", readHarness("forkserver.py"))
	// Not the work directory: Python imports from the directory that it starts in,
	// and a candidate may have left a module there.
	f.command.Dir = "/"
	scratch := directory
	if level == LevelIsolated {
		scratch = settings.Scratch
	}
	f.command.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + scratch, "TMPDIR=" + scratch,
		"PYTHONHASHSEED=" + hashSeed(varied), "PYTHONSAFEPATH=1", "PYTHONUTF8=1",
		"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		// Otherwise every child resolves the same symbols again.
		"LD_BIND_NOW=1",
	}
	f.command.Stdin = strings.NewReader(string(input))
	f.command.Stderr = f.stderr
	f.command.ExtraFiles = []*os.File{theirs}
	f.command.WaitDelay = time.Second
	f.command.SysProcAttr = processAttributes(level)
	if bounds.groups != nil {
		// The fork server and a waiting child are in the group, too.
		if f.group, err = bounds.groups.create(bounds.memory, candidateProcesses+2); err != nil {
			return nil, errors.Join(fmt.Errorf("control group: %w", err), control.Close())
		}
	}
	if err := f.command.Start(); err != nil {
		err = errors.Join(fmt.Errorf("start %s: %w", python.Executable, err), control.Close(), f.group.remove())
		if level == LevelIsolated {
			return nil, &notGivenError{level, err.Error()}
		}
		return nil, err
	}
	_ = theirs.Close()  // otherwise the end of the fork server does not show
	if f.group != nil { // before the first child
		err = f.group.admit(f.command.Process.Pid)
	}
	if err := errors.Join(err, f.greet(level), f.prepare()); err != nil {
		f.kill()
		if wrote := f.stderr.String(); wrote != "" {
			err = fmt.Errorf("%w; it wrote: %s", err, wrote)
		}
		return nil, err
	}
	return f, nil
}

// hashSeed returns the seed that orders sets of strings. It is the same in every
// process, so that programs are repeatable, except in varied ones.
func hashSeed(varied bool) string {
	if varied {
		return "1"
	}
	return "0"
}

// greet waits until the fork server is ready. The error names the step that
// the machine refused.
func (f *forkServer) greet(level Level) error {
	var greeting, version [1]byte
	if err := f.read(greeting[:], startTimeout); err != nil {
		return fmt.Errorf("start %s: %w", f.command.Path, err)
	}
	if greeting[0] == 'R' {
		err := f.read(version[:], startTimeout)
		f.landlock = int(version[0])
		return err
	}
	reason, err := io.ReadAll(io.LimitReader(f.control, tailBytes))
	if err != nil {
		return fmt.Errorf("start %s: %w", f.command.Path, err)
	}
	return &notGivenError{level, string(reason)}
}

func newSetup(python interpreter, directory string, level Level, config Config) (setup, error) {
	s := setup{
		Directory: directory, Path: python.Path, Preload: strings.Fields(readHarness("preload.txt")),
		Level: level, Visible: python.visible(), Scratch: python.scratch(), ScratchBytes: scratchFiles * config.FileBytes, UID: unprivilegedID,
	}
	if level != LevelOpen {
		filter, err := seccomp.Program(level == LevelIsolated)
		if err != nil {
			return s, &notGivenError{level, err.Error()}
		}
		s.Filter = hex.EncodeToString(filter)
	}
	s.FirstModules = readModules("pages", "isolation")
	s.Modules = append(JobModules(), readModules("children", "serving")...)
	s.Limits = map[string]int64{
		"RLIMIT_AS":     config.MemoryBytes,
		"RLIMIT_CORE":   1, // with 0 the kernel still runs a helper that collects core dumps
		"RLIMIT_FSIZE":  config.FileBytes,
		"RLIMIT_NOFILE": 64,
		"RLIMIT_NPROC":  4096, // counts all processes of the user, except root's
	}
	if level == LevelIsolated {
		s.Limits["RLIMIT_NPROC"] = candidateProcesses // counts the processes of the fork server's user namespace
	}
	return s, nil
}

// readModules returns the name and the source of modules of the harness.
func readModules(names ...string) (modules [][2]string) {
	for _, name := range names {
		modules = append(modules, [2]string{"codea1_" + name, readHarness(name + ".py")})
	}
	return modules
}

func readHarness(name string) string {
	source, err := harness.ReadFile("harness/" + name)
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(source)
}

// fork returns the pool's end of the job socket of a fresh child. The caller ends
// the child with end.
func (f *forkServer) fork() (*jobSocket, error) {
	if f.owing { // a broken fork server shows here, before it has a job
		if _, err := f.ended(); err != nil {
			return nil, err
		}
	}
	socket := f.next
	f.next = nil
	return socket, nil
}

// prepare requests the first child.
func (f *forkServer) prepare() error { return f.request('F') }

// end requests that the child is killed with all that it started, and that the
// next child is forked. It does not wait; ended waits for the end of the child.
func (f *forkServer) end() error {
	f.owing = true
	return f.request('N')
}

// request sends a request with the socket for the next child's job.
func (f *forkServer) request(what byte) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return fmt.Errorf("job socket: %w", err)
	}
	defer func() { _ = syscall.Close(theirs) }()
	if err := f.control.SetWriteDeadline(time.Now().Add(endTimeout)); err != nil {
		return errors.Join(err, syscall.Close(ours))
	}
	if _, _, err := f.control.WriteMsgUnix([]byte{what}, syscall.UnixRights(theirs), nil); err != nil {
		return errors.Join(fmt.Errorf("fork: %w", err), syscall.Close(ours))
	}
	f.next = &jobSocket{fd: ours}
	return nil
}

// ended waits until the child of the last call of end has ended, and returns its
// status.
func (f *forkServer) ended() (syscall.WaitStatus, error) {
	var answer [4]byte
	if err := f.read(answer[:], endTimeout); err != nil {
		return 0, fmt.Errorf("end child: %w", err)
	}
	f.owing = false
	status := int32(binary.LittleEndian.Uint32(answer[:]))
	if status < 0 {
		return 0, errors.New("the fork server could not fork")
	}
	return syscall.WaitStatus(status), nil
}

func (f *forkServer) read(answer []byte, within time.Duration) error {
	if err := f.control.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.ReadFull(f.control, answer)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New("the fork server is gone")
	}
	return err
}

// watch limits the memory of the running child where no control group does. The
// caller calls the returned function before it ends the child.
func (f *forkServer) watch() (stop func()) {
	if f.group != nil || !canWatch() {
		return func() {}
	}
	return startWatch(f.command.Process.Pid, f.bounds.memory).stop
}

// stop makes the fork server end its child and exit, and waits for that.
func (f *forkServer) stop() {
	f.hangUp()
	overdue := time.AfterFunc(endTimeout, func() { _ = f.command.Process.Kill() })
	defer overdue.Stop()
	f.wait()
}

// kill ends the fork server at once; its child dies with it.
func (f *forkServer) kill() {
	f.hangUp()
	_ = f.command.Process.Kill()
	f.wait()
}

func (f *forkServer) wait() {
	_ = f.command.Wait() // the exit status is not needed
	_ = f.group.remove() // the next pool removes a group that stays
}

func (f *forkServer) hangUp() {
	_ = f.control.Close()
	if f.next != nil {
		_ = f.next.close()
		f.next = nil
	}
}

// socketPair returns two connected sockets that no other child inherits. The first
// is non-blocking; the second blocks, as Python expects.
func socketPair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, 0, err
	}
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		return 0, 0, errors.Join(err, syscall.Close(pair[0]), syscall.Close(pair[1]))
	}
	return pair[0], pair[1], nil
}

// controlSocket returns a connection that can carry descriptors, and the other end
// of it.
func controlSocket() (*net.UnixConn, *os.File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	file, other := os.NewFile(uintptr(ours), "socket"), os.NewFile(uintptr(theirs), "socket")
	defer func() { _ = file.Close() }() // FileConn works on a copy
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, nil, errors.Join(err, other.Close())
	}
	return conn.(*net.UnixConn), other, nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	last []byte
}

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
