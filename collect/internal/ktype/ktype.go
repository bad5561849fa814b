// Package ktype finds the offset of a field in the running kernel's structs, from the
// kernel's description of its types (Documentation/bpf/btf.rst), so that a program assembled
// here fits that kernel, and says why a kernel refuses such a program.
package ktype

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Refused adds to an error why no program with the kernel's types can be loaded here, whatever it
// does; nil if that is not why. untyped are the errors of a kernel that does not describe them.
func Refused(err error, untyped ...error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("the kernel does not let this process load BPF programs (CAP_BPF and CAP_PERFMON, or root; a seccomp filter, or lockdown): %w", err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("the kernel has no bpf(2): %w", err)
	case slices.ContainsFunc(untyped, func(e error) bool { return errors.Is(err, e) }):
		return fmt.Errorf("the kernel does not describe its types in /sys/kernel/btf (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	return nil
}

// Offset returns the offset of a field of the given size, through nested structs.
func Offset(spec *btf.Spec, owner string, path []string, size uint32) (int16, error) {
	var st *btf.Struct
	if err := spec.TypeByName(owner, &st); err != nil {
		return 0, fmt.Errorf("struct %s: %w", owner, err)
	}
	var at uint32
	members := st.Members
	for i, name := range path {
		m, off, ok := member(members, name)
		if !ok {
			return 0, fmt.Errorf("struct %s has no %s", owner, name)
		}
		at += off
		if i == len(path)-1 {
			if n, err := btf.Sizeof(m.Type); err != nil || uint32(n) != size { //nolint:gosec // not negative without an error
				return 0, fmt.Errorf("%s of struct %s has %d bytes, not %d", name, owner, n, size)
			}
			break
		}
		members = membersOf(m.Type)
	}
	if at > math.MaxInt16 {
		return 0, fmt.Errorf("%s of struct %s is at byte %d, too far for an instruction", path[len(path)-1], owner, at)
	}
	return int16(at), nil
}

// member finds a field by name, also in the anonymous structs and unions that
// the kernel wraps fields in, and its offset in bytes.
func member(ms []btf.Member, name string) (btf.Member, uint32, bool) {
	for _, m := range ms {
		if m.Name == name && m.BitfieldSize == 0 {
			return m, m.Offset.Bytes(), true
		}
		if m.Name == "" {
			if in, off, ok := member(membersOf(m.Type), name); ok {
				return in, m.Offset.Bytes() + off, true
			}
		}
	}
	return btf.Member{}, 0, false
}

func membersOf(t btf.Type) []btf.Member {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		return t.Members
	case *btf.Union:
		return t.Members
	}
	return nil
}
