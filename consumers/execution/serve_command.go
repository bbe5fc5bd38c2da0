package execution

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
)

// ServeCommand runs programs for others over HTTP.
type ServeCommand struct {
	Address string `help:"Address to listen on. Whoever reaches it can run programs here." default:"127.0.0.1:8080"`
	Flags
}

// shutdownTimeout bounds how long a stopped server waits for its programs.
const shutdownTimeout = 10 * time.Second

// Run serves until ctx ends.
func (c *ServeCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	pool, err := Open(ctx, c.Config(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", c.Address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s/run_code  %s  %s\n", listener.Addr(), pool.Level(), pool.Python())
	return serve(ctx, listener, pool.HTTP())
}

// serve answers requests until ctx ends, and then those that are under way.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: shutdownTimeout, ReadTimeout: time.Minute,
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
		closing, cancelClosing := context.WithTimeout(working, shutdownTimeout)
		defer cancelClosing()
		err := server.Shutdown(closing)
		if errors.Is(err, context.DeadlineExceeded) {
			cancel() // programs that are still running
			err = server.Close()
		}
		return err
	})
	return group.Wait()
}
