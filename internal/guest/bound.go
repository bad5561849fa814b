package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// bound makes a control group with a limit of memory, bytes, for the commands, as
// Kata's agent makes one for a container. Without it a sandbox with a limit would have
// that and what the machine booted with, where a container has the limit alone. dir is
// where the control groups are mounted; nothing in the commands' root leads there, as in
// other sandboxes. The agent stays outside: files in a memory file system cannot be
// killed, and where they fill the group nothing in it goes on.
// https://docs.kernel.org/admin-guide/cgroup-v2.html
func bound(dir string, limit int64) (*os.File, error) {
	err := os.Mkdir(dir, 0o755) //nolint:gosec // a mount point
	if err == nil {
		err = unix.Mount("cgroup2", dir, "cgroup2", quiet, "")
	}
	if err != nil {
		return nil, fmt.Errorf("mounting the guest's control groups: %w", err)
	}
	group := filepath.Join(dir, "sandbox")
	err = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0)
	if err == nil {
		err = os.Mkdir(group, 0o755) //nolint:gosec // a control group
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(group, "memory.max"), strconv.AppendInt(nil, limit, 10), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("limiting memory to %d bytes: %w", limit, err)
	}
	return os.Open(group) //nolint:gosec // a control group
}
