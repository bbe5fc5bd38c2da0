//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in the kernel's struct seccomp_data. An argument's low half comes
// first on the little-endian machines that are supported. The filter reads the
// arguments of calls that ignore the high half only.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16 // and 8 for each argument after it
)

// condition restricts a call by one argument.
type condition struct {
	number   uint32
	argument uint32
	values   []uint32 // one of them exactly; if there are none:
	without  uint32   // none of these bits; if it is 0:
	notAll   uint32   // not all of these bits
}

// Program returns the filter as the kernel's array of struct sock_filter, in
// the machine's byte order. With namespaces, the filter lets the fork server make
// pid namespaces and mount the directory of its candidates.
//
// A call that is not allowed fails with EPERM. clone3 fails with ENOSYS: its flags
// are in memory, which no filter can read, and libc falls back to clone. A call
// made for another architecture (32 bit code, x32) kills the process.
func Program(namespaces bool) ([]byte, error) {
	raw, err := bpf.Assemble(instructions(namespaces))
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	program := make([]byte, 0, 8*len(raw))
	for _, r := range raw {
		program = binary.LittleEndian.AppendUint16(program, r.Op)
		program = append(program, r.Jt, r.Jf)
		program = binary.LittleEndian.AppendUint32(program, r.K)
	}
	return program, nil
}

func instructions(namespaces bool) []bpf.Instruction {
	var (
		allow   = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
		refuse  = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
		unknown = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
		kill    = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
		equal   = func(value uint32) bpf.Instruction {
			return bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipFalse: 1}
		}
	)
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: foreignNumbers, SkipTrue: 1},
		kill,
		equal(unix.SYS_CLONE3), unknown,
	}
	restricted := slices.Concat(conditions, conditionsHere)
	if namespaces {
		restricted = append(restricted, forkServerOnly...)
	}
	for _, c := range restricted {
		var test []bpf.Instruction
		for _, value := range c.values {
			test = append(test, equal(value), allow)
		}
		switch {
		case len(c.values) > 0:
		case c.without != 0:
			test = append(test, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: c.without, SkipTrue: 1}, allow)
		default:
			test = append(test, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.notAll}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.notAll, SkipTrue: 1}, allow)
		}
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.number, SkipTrue: uint8(len(test) + 2)},
			bpf.LoadAbsolute{Off: offsetArgument + 8*c.argument, Size: 4})
		program = append(program, test...)
		program = append(program, refuse)
	}
	numbers := slices.Sorted(slices.Values(append(slices.Clone(allowed), allowedHere...)))
	for _, number := range slices.Compact(numbers) {
		program = append(program, equal(number), allow)
	}
	return append(program, refuse)
}
