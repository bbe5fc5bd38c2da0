package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"math"
	"strings"
)

// function builds an assembly function.
type function struct {
	name, signature, doc string
	offsets              map[string]int // of parameters; of a slice, the offset of its base
	size                 int            // of parameters and result
	text                 strings.Builder
	vectors, generals    int // registers in use
	labels               int
}

// result is Go's name of an unnamed result.
const result = "ret"

// newFunction computes the offsets of the parameters in Go's stack-based calls:
// one after the other, each aligned to its size, the result aligned to 8 bytes.
func newFunction(name, signature, doc string) *function {
	f := &function{name: name + "NEON", signature: strings.TrimPrefix(signature, "func"), doc: doc, offsets: map[string]int{}}
	expr, err := parser.ParseExpr(signature)
	if err != nil {
		panic(err)
	}
	place := func(name, kind string) {
		size := map[string]int{"bool": 1, "float32": 4, "int": 8, "[]float32": 24}[kind]
		align := min(size, 8)
		f.size = (f.size + align - 1) / align * align
		f.offsets[name] = f.size
		f.size += size
	}
	kind := expr.(*ast.FuncType)
	for _, field := range kind.Params.List {
		for _, name := range field.Names {
			place(name.Name, types.ExprString(field.Type))
		}
	}
	if kind.Results != nil {
		f.size = (f.size + 7) / 8 * 8
		place(result, types.ExprString(kind.Results.List[0].Type))
	}
	return f
}

func (f *function) declaration() string { return "func " + f.name + f.signature }

// op adds one line of assembly.
func (f *function) op(format string, args ...any) {
	fmt.Fprintf(&f.text, "\t"+format+"\n", args...)
}

// label returns a new label. mark writes it at the current line.
func (f *function) label(name string) string {
	f.labels++
	return fmt.Sprintf("%s%d", name, f.labels)
}

func (f *function) mark(label string) { fmt.Fprintf(&f.text, "%s:\n", label) }

// vector and general are numbers of registers.
type (
	vector  int
	general int
)

func (v vector) f() string       { return fmt.Sprintf("F%d", int(v)) }
func (v vector) s4() string      { return fmt.Sprintf("V%d.S4", int(v)) }
func (v vector) b16() string     { return fmt.Sprintf("V%d.B16", int(v)) }
func (v vector) s(i int) string  { return fmt.Sprintf("V%d.S[%d]", int(v), i) }
func (g general) String() string { return fmt.Sprintf("R%d", int(g)) }

// vec allocates a vector register.
func (f *function) vec() vector {
	f.vectors++
	if f.vectors > 32 {
		panic(f.name + ": out of vector registers")
	}
	return vector(f.vectors - 1)
}

func (f *function) vecs(n int) []vector {
	v := make([]vector, n)
	for i := range v {
		v[i] = f.vec()
	}
	return v
}

// gen allocates a general register: R0 to R17, then R19 to R25. The platform
// reserves R18, Go reserves R26 to R30.
func (f *function) gen() general {
	f.generals++
	switch n := f.generals - 1; {
	case n < 18:
		return general(n)
	case n < 25:
		return general(n + 1)
	}
	panic(f.name + ": out of general registers")
}

// scratch frees the registers that body allocates.
func (f *function) scratch(body func()) {
	vectors, generals := f.vectors, f.generals
	body()
	f.vectors, f.generals = vectors, generals
}

func (f *function) address(name, part string) string {
	offset, ok := f.offsets[name]
	if !ok {
		panic(f.name + " has no " + name)
	}
	if part == "len" {
		offset += 8
	}
	if part != "" {
		part = "_" + part
	}
	return fmt.Sprintf("%s%s+%d(FP)", name, part, offset)
}

// base, length, integer and bytes load parameters. bytes converts a stride in
// elements to bytes.
func (f *function) base(name string) general   { return f.load(f.address(name, "base")) }
func (f *function) length(name string) general { return f.load(f.address(name, "len")) }
func (f *function) integer(name string) general {
	return f.load(f.address(name, ""))
}

func (f *function) bytes(name string) general {
	r := f.integer(name)
	f.op("LSL $2, %v, %v", r, r)
	return r
}

func (f *function) load(address string) general {
	r := f.gen()
	f.op("MOVD %s, %v", address, r)
	return r
}

// copied copies a register to a new one.
func (f *function) copied(from general) general {
	r := f.gen()
	f.op("MOVD %v, %v", from, r)
	return r
}

// broadcast fills a register with a float32 parameter.
func (f *function) broadcast(name string) vector {
	v := f.vec()
	f.op("FMOVS %s, %s", f.address(name, ""), v.f())
	f.op("VDUP %s, %s", v.s(0), v.s4())
	return v
}

// constant fills a register with a number, bits fills it with a bit pattern.
func (f *function) constant(x float32) vector { return f.bits(math.Float32bits(x)) }

func (f *function) bits(pattern uint32) vector {
	v := f.vec()
	f.scratch(func() {
		r := f.gen()
		f.op("MOVD $%#x, %v", pattern, r)
		f.op("VDUP %v, %s", r, v.s4())
	})
	return v
}

func (f *function) end() *function {
	f.op("RET")
	return f
}

// endWith returns the first lane of v.
func (f *function) endWith(v vector) *function {
	f.op("FMOVS %s, %s", v.f(), f.address(result, ""))
	return f.end()
}
