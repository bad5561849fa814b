package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestDataReadOnly: a directory for data that cannot be written is a usage error that says so.
func TestDataReadOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: the kernel may refuse access before it sees that a file system is read-only")
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range mounts {
		at, err := os.Stat(m.Mountpoint)
		if err != nil || !at.IsDir() || !slices.Contains(strings.Split(m.Options, ","), "ro") {
			continue
		}
		found = true
		_, err = newApp(io.Discard, io.Discard).siteHere("", m.Mountpoint)
		if err == nil || exitCode(err, io.Discard) != exitUsage || !strings.Contains(err.Error(), m.Mountpoint+" is read-only; give a directory that can be written") {
			t.Errorf("%s: %v", m.Mountpoint, err)
		}
	}
	if !found {
		t.Skip("this machine has no read-only mount")
	}
	if _, err := newApp(io.Discard, io.Discard).siteHere("", t.TempDir()); err != nil {
		t.Error(err)
	}
}
