package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Requests of Documentation/virt/kvm/api.rst; they take no argument, or zero.
const (
	kvmGetAPIVersion = 0xAE00
	kvmCreateVM      = 0xAE01
	kvmVersion       = 12 // "applications should refuse to run" on any other
)

// makesVM begins the description of a KVM that can make a virtual machine.
const makesVM = "opens and makes a VM"

// Proven adds the result of a trial boot to Host.KVM. If no VM can be made, it adds nothing.
func Proven(kvm string, boots bool) string {
	switch {
	case !strings.HasPrefix(kvm, makesVM):
		return kvm
	case boots:
		return makesVM + "; a machine has booted with it"
	}
	return makesVM + ", but no machine boots with it"
}

// tryKVM reports whether hardware virtualization works: it makes an empty virtual machine
// and closes it. That proves less than a boot: on some hosts the first instruction of a VM
// fails, so the result says "not proven by a boot".
func tryKVM(path string) string {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " is missing: no hardware virtualization here, or the kvm module is not loaded"
	case errors.Is(err, fs.ErrPermission):
		return path + " may not be opened: run as root or join the group kvm"
	case err != nil:
		return fmt.Sprintf("%s does not open: %v", path, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	v, err := unix.IoctlRetInt(fd, kvmGetAPIVersion)
	if err != nil {
		return fmt.Sprintf("%s opens but is not KVM: %v", path, err)
	}
	if v != kvmVersion {
		return fmt.Sprintf("%s has API version %d, not %d", path, v, kvmVersion)
	}
	vm, err := unix.IoctlRetInt(fd, kvmCreateVM)
	if err != nil {
		return fmt.Sprintf("%s opens, but making a VM fails: %v", path, err)
	}
	_ = unix.Close(vm) // an empty VM
	return makesVM + "; not proven by a boot"
}
