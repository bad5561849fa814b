package host

import (
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
