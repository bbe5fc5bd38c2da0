package sandboxfusion

import (
	"context"
	"fmt"
	"log/slog"

	"codea1/consumers/execution/sandbox"
	"codea1/events/doctor"
)

// Examine examines whether this machine, or the server of the flags, isolates candidates.
func Examine(ctx context.Context, flags *sandbox.Flags, logger *slog.Logger) doctor.Finding {
	f := doctor.Finding{What: "sandbox", Needed: true}
	pool, err := Open(ctx, flags, logger)
	if err != nil {
		f.Err = err
		return f
	}
	about := pool.Describe()
	f.Detail, f.Err = fmt.Sprintf("%s: %s; %s", about.Level, about.Isolation, about.Python), pool.Close()
	return f
}
