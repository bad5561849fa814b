package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// bound makes a control group with a memory limit, in bytes, for the commands, as Kata's
// agent makes one for a container. Without it a sandbox would have its limit and the memory
// of the boot, while a container has only its limit. dir is where the control groups are
// mounted; as in other sandboxes, the commands' root has no path to it. The agent stays
// outside: files in a memory file system cannot be killed, and if they fill the group,
// every process in it hangs.
// https://docs.kernel.org/admin-guide/cgroup-v2.html
func bound(dir string, limit int64) (*os.File, error) {
	err := os.Mkdir(dir, 0o755) //nolint:gosec // a mount point
	if err == nil {
		err = unix.Mount("cgroup2", dir, "cgroup2", quiet, "")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot mount the guest's control groups: %w", err)
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
		return nil, fmt.Errorf("cannot limit memory to %d bytes: %w", limit, err)
	}
	return os.Open(group) //nolint:gosec // a control group
}
