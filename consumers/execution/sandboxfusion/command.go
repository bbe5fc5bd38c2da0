package sandboxfusion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/sandbox"
)

// ServeCommand runs programs for HTTP clients.
type ServeCommand struct {
	Address string        `help:"Address to listen on. Every client that reaches it, and has the token where one is set, can run programs here." default:"127.0.0.1:8080"`
	Host    []string      `help:"Names under which clients reach the server, besides localhost and addresses." placeholder:"NAME"`
	Waiting int           `help:"Requests that may wait while others run; the server answers 503 to more." default:"64" min:"0" max:"1048576"`
	BodyMiB int64         `name:"body-mib" help:"Largest request and largest file of a program, in MiB." default:"16" min:"1" max:"256"`
	Drain   time.Duration `help:"Time that running programs have after the server is stopped." default:"30s" min:"0s"`
	sandbox.Flags
}

// headerTimeout is the time that a client has to send a request's header;
// keptTimeout is the time that a connection stays open without a request.
const (
	headerTimeout = 10 * time.Second
	keptTimeout   = 2 * time.Minute
)

// Run serves until ctx ends.
func (c *ServeCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	if c.Sandbox != "" {
		return fmt.Errorf("--sandbox: %w", sandbox.ErrThisMachineOnly)
	}
	token, err := readToken(c.SandboxTokenFile)
	if err != nil {
		return err
	}
	config := c.Config(logger)
	config.FileBytes = c.BodyMiB << 20 // a program must be able to write each file of a request
	pool, err := sandbox.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", c.Address)
	if err != nil {
		return err
	}
	about := pool.Describe()
	fmt.Fprintf(out, "http://%s/run_code  %s  %s\n", listener.Addr(), about.Level, about.Python)
	return serve(ctx, listener, Handler(pool, ServeLimits{Waiting: c.Waiting, BodyBytes: c.BodyMiB << 20, Token: token, Hosts: c.Host}), c.Drain)
}

// serve answers requests until ctx ends. Then the running requests have the time
// drain to end.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, drain time.Duration) error {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: keptTimeout,
		BaseContext: func(net.Listener) context.Context { return working },
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		closing, cancelClosing := context.WithTimeout(working, drain)
		defer cancelClosing()
		err := server.Shutdown(closing)
		if errors.Is(err, context.DeadlineExceeded) {
			cancel() // ends the running programs; their clients get a SandboxError
			last, cancelLast := context.WithTimeout(context.WithoutCancel(working), headerTimeout)
			defer cancelLast()
			if err = server.Shutdown(last); err != nil {
				err = errors.Join(err, server.Close())
			}
		}
		return err
	})
	return group.Wait()
}
