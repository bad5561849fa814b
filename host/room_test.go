package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/trial"
	"tare/volume"
)

// TestRoom: files that are larger than the free space of what would hold them are refused, all of a trial together, whether their
// directory is there or not.
func TestRoom(t *testing.T) {
	dir := t.TempDir()
	p := &Place{Data: filepath.Join(dir, "not", "yet"), Memory: dir, Root: t.TempDir(), Images: map[string]Image{"redis": {Root: filepath.Join(dir, "none")}}}
	data, memory := volume.AtData(volume.Disk)[0], volume.AtData(volume.Memory)[0]
	image := volume.Volume{Name: "data", Medium: volume.Image, Size: 1 << 50}
	for _, c := range []struct {
		name  string
		rooms []trial.Room
		want  string // "" none
	}{
		{"none", nil, ""},
		{"small", []trial.Room{{Bytes: 1, Volume: &data}, {Bytes: 1, Volume: &memory}, {Bytes: 1, Root: true}, {Bytes: 1}}, ""},
		{"data", []trial.Room{{Bytes: 1 << 50, Volume: &data}}, "the workload's files need 1024 TiB; set a smaller size, or name a directory on another disk (--data)"},
		{"copies", []trial.Room{{Bytes: 1 << 49, Volume: &data}, {Bytes: 1 << 49, Volume: &data}}, "need 1024 TiB"},
		{"image", []trial.Room{{Bytes: image.Size, Volume: &image}}, "need 1024 TiB"},
		{"root", []trial.Room{{Bytes: 1 << 50, Root: true}}, "need 1024 TiB"},
		{"bind", []trial.Room{{Bytes: 1 << 50, Volume: &memory}}, "need 1024 TiB"},
		{"some copies", []trial.Room{{Copies: 2}, {Copies: 1, Image: "redis"}}, ""},
		{"many copies", []trial.Room{{Copies: 1 << 20}, {Copies: 1 << 20, Image: "redis"}}, "2097152 copies of the root file system need 144 TiB; use fewer sandboxes at once, or an overlay, or name a directory on another disk (--data)"},
		{"tmpfs", []trial.Room{{Bytes: 1 << 50}}, "of memory free"},
	} {
		err := p.Check(trial.Demand{Rooms: c.rooms})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestUsed: the blocks of a trial's files, wherever they are below its directory; holes are none.
func TestUsed(t *testing.T) {
	p := &Place{Data: t.TempDir()}
	if n, err := p.Used("t-1"); n != 0 || err != nil {
		t.Errorf("no directory: %d, %v", n, err)
	}
	for name, size := range map[string]int{"t-1/a-upper/root.raw": 1 << 20, "t-1/b-upper/root.raw": 2 << 20, "t-10/a-upper/root.raw": 4 << 20} {
		path := filepath.Join(p.Data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte{1}, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := p.Used("t-1"); n < 3<<20 || n > 3<<20+1<<18 || err != nil {
		t.Errorf("%d bytes, %v; want about 3 MiB", n, err)
	}
}
