package process_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"tare/record"
	"tare/sandbox/process"
)

// New returns a kind whose sandboxes are processes in a chroot(2).
func New(stateDir string) *process.Native {
	return process.Like(process.Config{
		Name: "chroot", About: "processes in a chroot", Family: record.FamilyContainer,
		Enter: func(root string) error {
			if err := unix.Chroot(root); err != nil {
				return fmt.Errorf("chroot to %s: %w", root, err)
			}
			return unix.Chdir("/")
		},
	}, stateDir)
}
