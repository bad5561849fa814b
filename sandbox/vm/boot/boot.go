// Package boot makes what a virtual machine starts from: a kernel of a
// distribution package and an initramfs with the guest's first program in it.
//
// The data path: 1. Get finds the unpacked kernel package in the image cache, or
// has it built (host/image, images/guest-kernel); 2. it orders the modules
// that a guest needs by what each depends on; 3. it writes an uncompressed initramfs
// of the program, the modules and their order, once for each combination.
//
// The program is that of agent/guest/init, which this one carries if it was built by
// `make build` (tag guestinit); otherwise it is this one itself.
package boot

import (
	"cmp"
	"context"
	"path/filepath"
)

// Files are what a machine boots from. The files are shared and never change.
type Files struct {
	Kernel    string // the compressed image, for QEMU's -kernel
	Initramfs string
	Version   string // of the kernel, as uname -r will say
	Package   string // the distribution package and its version, or the path of the user's own kernel
	Digest    string // of both, for the key of a snapshot
}

// Origin tells the kernel's file and where it is from, for errors.
func (f Files) Origin() string {
	if filepath.IsAbs(f.Package) {
		return f.Package + ", as " + KernelVariable + " names it"
	}
	return f.Kernel + ", of " + cmp.Or(f.Package, "the image "+Image)
}

// Source is where Files come from.
type Source interface {
	// Get returns the files, making what is missing. It may download. The error says
	// what a user can do.
	Get(context.Context) (Files, error)
	// Find does so without making or downloading a kernel; ok is false if there is none.
	Find() (f Files, ok bool, err error)
}
