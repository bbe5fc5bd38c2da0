package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

//go:generate go run ./internal/neon -out asm_arm64.s -stubs asm_arm64.go

// Variable is the environment variable that sets the path.
const Variable = "CODEA1_KERNEL"

// Errors of a path that cannot be used.
var (
	ErrUnknownPath     = errors.New("unknown kernel path")
	ErrUnsupportedPath = errors.New("kernel path not supported by this machine")
)

// path is one implementation of every kernel. Its callers check lengths and
// strides. Strides count elements.
type path struct {
	name string

	// tall is the tile for many rows. wide is the tile for the few rows of a
	// decode step, where more columns use the multipliers better.
	tall, wide tile

	dot             func(a, b []float32) float32
	dot3            func(a, b, c []float32) float32                   // Σ a*b*c
	dotRows         func(dst, x, rows []float32, stride int)          // dst[i] = x·rows[i]
	axpy            func(alpha float32, x, y []float32)               // y += alpha*x
	axpyRows        func(y, w, rows []float32, stride int)            // y += Σ w[i]*rows[i]
	maximum         func(x []float32) float32                         // len(x) > 0
	expSum          func(x []float32, max float32) float32            // x = exp(x-max); Σ x
	scale           func(x []float32, s float32)                      // x *= s
	softmaxBackward func(dx, p, dp []float32, s float32)              // dx = p*(dp-s)
	swiglu          func(dst, gate, up []float32)                     // see SwiGLU
	swigluBackward  func(dGate, dUp, gate, up, dOut []float32)        // see SwiGLUBackward
	scaleMul        func(dst, x, w []float32, s float32)              // dst = x*s*w
	rmsBackward     func(dx, dw, x, w, dy []float32, inv, dn float32) // see RMSNormBackward
	adamw           func(w, m, v, g []float32, gradScale, beta1, beta1C, beta2, beta2C, rootScale, epsilon, rate, decay float32)
}

// tile is a micro-kernel for a block of C of at most rows x 16*panels elements.
type tile struct {
	rows, panels int
	run          tileFunc
}

// tileFunc computes C[rows, 16*panels] = A*B, or C += A*B if load is set.
// A[r,p] is a[r*aRow+p*aStep]; B[p, 16*q+j] is b[q*bPanel+16*p+j]; k > 0.
type tileFunc func(rows, k int, a []float32, aRow, aStep int, b []float32, bPanel int, c []float32, ldc int, load bool)

// known has the names of all paths of all machines in order of preference.
var known = []string{"avx512", "avx2", "neon", "scalar"}

// active is written only at start and by Use. It is nil if refused is set.
var (
	active  *path
	refused error
)

func init() {
	name := os.Getenv(Variable)
	if name == "" {
		name = Names()[0]
	}
	if refused = Use(name); refused != nil {
		refused = fmt.Errorf("%s: %w", Variable, refused)
		active = nil
	}
}

// Check returns [ErrUnknownPath] or [ErrUnsupportedPath] if the path of
// CODEA1_KERNEL cannot be used. Callers check it before they compute. All other
// functions panic with that error.
func Check() error {
	return refused
}

// Name returns the active path: "avx512", "avx2", "neon" or "scalar".
func Name() string {
	return current().name
}

// Names returns the paths that this machine supports, best first. "scalar" is
// always one of them.
func Names() []string {
	var names []string
	for _, p := range supported() {
		names = append(names, p.name)
	}
	return names
}

// Use sets the path of the whole process. It must not be called while another
// goroutine computes.
func Use(name string) error {
	for _, p := range supported() {
		if p.name == name {
			active, refused = p, nil
			return nil
		}
	}
	for _, k := range known {
		if k == name {
			return fmt.Errorf("%w: %s (supported: %s)", ErrUnsupportedPath, name, strings.Join(Names(), ", "))
		}
	}
	return fmt.Errorf("%w: %q (known: %s)", ErrUnknownPath, name, strings.Join(known, ", "))
}

// supported returns the paths of this machine, best first.
func supported() []*path {
	return append(vectorPaths(), &scalarPath)
}

// current returns the active path. It panics if the path of CODEA1_KERNEL cannot be
// used.
func current() *path {
	if active == nil {
		panic(refused)
	}
	return active
}
