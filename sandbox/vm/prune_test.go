package vm

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPrune: what was not used for longest goes first, over all kinds together; what was just
// used, what is being made and the limit stay.
func TestPrune(t *testing.T) {
	const size = 64 << 10
	cache := t.TempDir()
	age := map[string]time.Duration{
		"disks/a.ext4":                  5 * time.Hour,
		"snapshots/b.state":             4 * time.Hour,
		"own/vm-new/disks/c.ext4":       6 * time.Hour,
		"own/vm-new/snapshots/d.state":  time.Hour,
		"own/vm-new/disks/.making-old":  time.Hour,
		"own/vm-new/disks/.making-busy": time.Hour,
		"disks/fresh.ext4":              0,
		"own/vm-gone/accelerator.json":  time.Hour,
		"accelerator.json":              time.Hour,
		"boot/x/vmlinuz":                time.Hour, // its own cache prunes it
	}
	for name, old := range age {
		path := filepath.Join(cache, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-old)
		if err := os.Chtimes(path, used, used); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := lock(t.Context(), filepath.Join(cache, "own/vm-new/disks", lockFile), "busy")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	prune := func(o PruneOptions) (names []string) {
		t.Helper()
		gone, err := Prune(t.Context(), cache, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range gone {
			names = append(names, c.Kind+" "+c.Name)
			if _, err := os.Lstat(c.Path); (err == nil) != o.Dry || c.Bytes < size {
				t.Errorf("%+v: %v", c, err)
			}
		}
		slices.Sort(names)
		return names
	}
	// Seven files count, the unfinished ones included: four may stay.
	want := []string{"disk a.ext4", "disk vm-new/c.ext4", "leftover vm-new/.making-old"}
	for _, dry := range []bool{true, false} {
		if got := prune(PruneOptions{Limit: 4 * size, Dry: dry}); !slices.Equal(got, want) {
			t.Errorf("dry %v: %q, want %q", dry, got, want)
		}
	}
	if got := prune(PruneOptions{}); len(got) > 0 {
		t.Errorf("within the limit: %q", got)
	}
	if got, want := prune(PruneOptions{All: true}), []string{"snapshot b.state", "snapshot vm-new/d.state"}; !slices.Equal(got, want) {
		t.Errorf("all: %q, want %q", got, want)
	}
	left := map[string]bool{}
	for name := range age {
		if _, err := os.Lstat(filepath.Join(cache, name)); err == nil {
			left[name] = true
		}
	}
	if want := "accelerator.json boot/x/vmlinuz disks/fresh.ext4 own/vm-new/disks/.making-busy"; strings.Join(slices.Sorted(maps.Keys(left)), " ") != want {
		t.Errorf("left: %v, want %s", left, want)
	}
	if gone, err := Prune(t.Context(), filepath.Join(cache, "none"), PruneOptions{All: true}); err != nil || len(gone) > 0 {
		t.Error(gone, err)
	}
}
