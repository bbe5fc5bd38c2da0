package execution

import "context"

// backend is where jobs are done. The rest of the package does not know which
// one it has: a program, its calls and what they return mean the same in both.
type backend interface {
	// run does a job whose limits are set. The error is ctx's, ErrClosed or a
	// *SandboxError: what the job's program does never makes one.
	run(ctx context.Context, j job) (session, error)
	// close frees what is left when no job is under way and no fork server runs.
	close() error
}

// run does a job: in one child if all goes well, and in a fresh child for the
// rest of the items after each that hangs or kills its child.
func (p *Pool) run(ctx context.Context, j job) (session, error) {
	if j.valueBytes == 0 {
		j.valueBytes = p.config.ValueBytes
	}
	if j.budget == 0 {
		j.budget = p.config.JobTimeout
	}
	if j.each == 0 {
		j.each = p.config.CallTimeout
	}
	return p.backend.run(ctx, j)
}

// jobModules are the parts of the harness that do jobs, in the order of their
// imports. Those before child know nothing of descriptors or isolation.
var jobModules = []string{"values", "suites", "pytests", "scripts", "programs", "objects", "proxies", "child"}
