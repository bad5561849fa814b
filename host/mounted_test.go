package host

import (
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// TestMounted: the device of a mount is refused by its number, before anything opens it; the error says where it is mounted.
func TestMounted(t *testing.T) {
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Major == 0 {
			continue
		}
		err := mounted("/dev/given", unix.Mkdev(uint32(m.Major), uint32(m.Minor)))
		if err == nil || !strings.Contains(err.Error(), "/dev/given is in use: /dev/given is mounted on /") {
			t.Errorf("%d:%d on %s: %v", m.Major, m.Minor, m.Mountpoint, err)
		}
	}
	if err := mounted("/dev/none", unix.Mkdev(1234, 5)); err != nil {
		t.Error(err)
	}
}

// TestInUse: nobody is told to unmount the root file system.
func TestInUse(t *testing.T) {
	for point, hint := range map[string]bool{"/": false, "/mnt": true} {
		err := inUse("/dev/sda", "/dev/sda1", point)
		if got := strings.Contains(err.Error(), "unmount"); got != hint || !strings.HasSuffix(err.Error(), "name another device") {
			t.Errorf("%s: %v", point, err)
		}
	}
}
