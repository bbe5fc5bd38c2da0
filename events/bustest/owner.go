package bustest

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codea1/events"
)

// ownerEnv makes a process an owner: address, run, name and TTL.
const ownerEnv = "CODEA1_BUSTEST_OWNER"

// Main runs the tests of a package that calls Run, and fails if a goroutine is
// left. A process that the suite has started as the owner of a lease is that, and
// runs no test. connect connects to the service at Features.Address.
func Main(m *testing.M, connect func(ctx context.Context, address string) (events.Broker, error)) {
	if what := os.Getenv(ownerEnv); what != "" {
		if err := own(what, connect); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Most tests wait: more of them than cores use the time better. The flag -parallel
	// overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// own takes a lease, prints "owner", and answers each line on standard input
// with the result of Confirm.
func own(what string, connect func(context.Context, string) (events.Broker, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	config := events.LeaseConfig{Name: "log", Owner: "child", Wait: true}
	address, rest, _ := strings.Cut(what, " ")
	if _, err := fmt.Sscan(rest, &config.Run, (*int64)(&config.TTL)); err != nil {
		return err
	}
	bus, err := connect(ctx, address)
	if err != nil {
		return err
	}
	lease, err := bus.Lease(ctx, config)
	if err != nil {
		return err
	}
	fmt.Println("owner")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch err := lease.Confirm(ctx); {
		case err == nil:
			fmt.Println("confirmed")
		case errors.Is(err, events.ErrLeaseLost):
			<-lease.Lost()
			fmt.Println("lost")
		default:
			fmt.Println(err)
		}
	}
	return nil
}

// process is an owner in another process.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (s *suite) owner(ctx context.Context, t *testing.T, run string, ttl time.Duration) *process {
	t.Helper()
	if s.features.Address == "" {
		t.Skip("no other process can reach this bus")
	}
	p := &process{t: t, cmd: exec.CommandContext(ctx, os.Args[0])}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", ownerEnv, s.features.Address, run, ttl))
	p.cmd.Stderr = os.Stderr
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.want("owner")
	return p
}

// confirm makes the owner call Confirm; want reads the answer.
func (p *process) confirm() {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) want(line string) {
	p.t.Helper()
	if p.out.Scan(); p.out.Text() != line {
		p.t.Fatalf("the owner says %q, want %q", p.out.Text(), line)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
