package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// mounted refuses a device that is mounted, or a partition of which is. An open of it may fail for another reason first, which would
// not tell.
func mounted(device string, number uint64) error {
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return fmt.Errorf("cannot read what is mounted: %w", err)
	}
	numbers := map[string]string{numberOf(number): device}
	parts, _ := filepath.Glob(fmt.Sprintf("/sys/dev/block/%s/*/partition", numberOf(number))) // the pattern is good
	for _, part := range parts {
		dir := filepath.Dir(part)
		if b, err := os.ReadFile(filepath.Join(dir, "dev")); err == nil { //nolint:gosec // below /sys
			numbers[strings.TrimSpace(string(b))] = "/dev/" + filepath.Base(dir)
		}
	}
	used := ""
	for _, m := range all {
		of := fmt.Sprintf("%d:%d", m.Major, m.Minor)
		var st unix.Stat_t
		if m.Major == 0 && strings.HasPrefix(m.Source, "/dev/") && unix.Stat(m.Source, &st) == nil { // btrfs has numbers of its own
			of = numberOf(st.Rdev)
		}
		if name, is := numbers[of]; is {
			if m.Mountpoint == "/" {
				return inUse(device, name, "/")
			}
			if used == "" {
				used = name + "\n" + m.Mountpoint
			}
		}
	}
	if name, point, is := strings.Cut(used, "\n"); is {
		return inUse(device, name, point)
	}
	return nil
}

// inUse says what a device is in use for. Nobody should unmount what the system runs from.
func inUse(device, name, point string) error {
	if point == "/" {
		return fmt.Errorf("%s is in use: %s is mounted on /, the root of this system; name another device", device, name)
	}
	return fmt.Errorf("%s is in use: %s is mounted on %s; unmount it, or name another device", device, name, point)
}

func numberOf(device uint64) string {
	return fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
}
