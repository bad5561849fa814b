// Package ktype finds the offset of a field in the running kernel's structs, from the
// kernel's description of its types (Documentation/bpf/btf.rst), so that a program assembled
// here fits that kernel.
package ktype

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf/btf"
)

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
