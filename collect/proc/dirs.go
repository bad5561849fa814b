package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// links returns the number of directories in dir without listing it: the link count less
// two. In the task directory of a process these are its threads (proc_task_getattr of
// fs/proc/base.c). -1: unknown.
func links(dir string) int {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Nlink < 2 {
		return -1
	}
	return int(st.Nlink) - 2 //nolint:gosec // at most PID_MAX_LIMIT
}

// subdirectories lists the directories in a directory of a cgroup tree. Usually the link
// count shows that there are none, which saves the listing.
func subdirectories(dir string) []string {
	if links(dir) == 0 {
		return nil
	}
	entries, _ := os.ReadDir(dir) // gone: none
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

// list returns the names in a directory, nil if it is gone. It uses Readdirnames because
// ReadDir sorts and makes an entry for each.
func list(dir string) []string {
	f, err := os.Open(dir) //nolint:gosec // under the injected root
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	names, _ := f.Readdirnames(-1)
	return names
}
