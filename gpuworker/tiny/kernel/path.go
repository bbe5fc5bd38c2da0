package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

//go:generate go run ./internal/neon -out asm_arm64.s -stubs asm_arm64.go

// Variable is the environment variable that forces a path.
const Variable = "CODEA1_KERNEL"

// Reasons for which a path is refused.
var (
	ErrUnknownPath     = errors.New("unknown kernel path")
	ErrUnsupportedPath = errors.New("kernel path not supported by this machine")
)

// path is one implementation of every kernel. Lengths and strides reach it
// checked; strides count elements.
type path struct {
	name string

	// tall is the tile for many rows, wide the one for the few rows of a
	// decode step, where more columns keep the multipliers busy.
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

// tile is a micro-kernel: a block of C of at most rows x 16*panels elements.
type tile struct {
	rows, panels int
	run          tileFunc
}

// tileFunc computes C[rows, 16*panels] = A*B, or C += A*B when load is set.
// A[r,p] is a[r*aRow+p*aStep]; B[p, 16*q+j] is b[q*bPanel+16*p+j]; k > 0.
type tileFunc func(rows, k int, a []float32, aRow, aStep int, b []float32, bPanel int, c []float32, ldc int, load bool)

// known lists the names in order of preference, whatever the machine.
var known = []string{"avx512", "avx2", "neon", "scalar"}

// active is written at start and by Use only; nil when refused is set.
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

// Check returns why the path asked for by CODEA1_KERNEL cannot be used
// ([ErrUnknownPath] or [ErrUnsupportedPath]), or nil. Commands call it before
// computing anything; a kernel called all the same panics with that error.
func Check() error {
	return refused
}

// Name returns the path in use: "avx512", "avx2", "neon" or "scalar".
func Name() string {
	return current().name
}

// Names returns the paths this machine can run, best first. It always holds
// "scalar".
func Names() []string {
	var names []string
	for _, p := range supported() {
		names = append(names, p.name)
	}
	return names
}

// Use switches the whole process to the named path. It must not be called
// while another goroutine computes.
func Use(name string) error {
	for _, p := range supported() {
		if p.name == name {
			active, refused = p, nil
			return nil
		}
	}
	for _, k := range known {
		if k == name {
			return fmt.Errorf("%w: %s (it has %s)", ErrUnsupportedPath, name, strings.Join(Names(), ", "))
		}
	}
	return fmt.Errorf("%w: %q (known: %s)", ErrUnknownPath, name, strings.Join(known, ", "))
}

// supported lists this machine's paths, best first.
func supported() []*path {
	return append(vectorPaths(), &scalarPath)
}

// current returns the active path. It panics with the reason when
// CODEA1_KERNEL asked for one that cannot run.
func current() *path {
	if active == nil {
		panic(refused)
	}
	return active
}
