package guest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// sysfs is what a machine with a disk, a port and two processors shows.
func sysfs() fstest.MapFS {
	return fstest.MapFS{
		"class/virtio-ports/vport0p1/name":       file("other\n"),
		"class/virtio-ports/vport0p2/name":       file(PortName + "\n"),
		"block/loop0/size":                       file("0\n"),
		"block/vda/serial":                       file("root"),
		"block/vdb/serial":                       file("data\n"),
		"bus/virtio/devices/virtio0/modalias":    file("virtio:d00000003v00001AF4\n"),
		"bus/virtio/devices/virtio1/modalias":    file("virtio:d00000002v00001AF4\n"),
		"devices/system/cpu/online":              file("0-1\n"),
		"devices/system/memory/block_size_bytes": file("8000000\n"),
		"devices/system/memory/memory0/state":    file("online\n"),
		"devices/system/memory/memory1/state":    file("online\n"),
		"devices/system/memory/memory32/state":   file("offline\n"),
	}
}

func TestFindPort(t *testing.T) {
	if dev, err := findPort(sysfs()); err != nil || dev != "vport0p2" {
		t.Errorf("%q %v", dev, err)
	}
	if _, err := findPort(fstest.MapFS{}); !errors.Is(err, errNoPort) {
		t.Errorf("%v", err)
	}
}

func TestFindBlock(t *testing.T) {
	if dev, err := findBlock(sysfs(), "data"); err != nil || dev != "vdb" {
		t.Errorf("%q %v", dev, err)
	}
	scsi := fstest.MapFS{"block/sda/device/vpd_pg80": {Data: []byte("\x00\x80\x00\x04data")}, "block/sr0/device/vpd_pg80": {Data: []byte{0}}}
	if dev, err := findBlock(scsi, "data"); err != nil || dev != "sda" {
		t.Errorf("on the SCSI bus: %q %v", dev, err)
	}
	if _, err := findBlock(sysfs(), "none"); err == nil || !strings.Contains(err.Error(), `"root"`) {
		t.Errorf("%v", err)
	}
}

// TestLoader: what is for all, what is for a device that is there, and, later, what
// is for a set-up machine; each once, and one that fails keeps only those that need it.
func TestLoader(t *testing.T) {
	steps := []Step{
		{Always, []string{"ring", "pci"}}, {Always, []string{"ring", "console"}},
		{"virtio:d00000001v*", []string{"ring", "net"}}, {"virtio:d00000002v*", []string{"ring", "broken", "blk"}},
		{"fs-xfs", []string{"crc32c", "xfs"}}, {Late, []string{"overlay"}},
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, OrderFile), []byte(FormatOrder(steps)), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := openLoader(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(steps, l.steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var loaded []string
	l.load = func(file string) error {
		name := strings.TrimSuffix(filepath.Base(file), ModuleSuffix)
		loaded = append(loaded, name)
		if name == "broken" {
			return fs.ErrInvalid
		}
		return nil
	}
	if err := l.run(sysfs(), false); err == nil || !strings.Contains(err.Error(), "the module broken") {
		t.Errorf("%v", err)
	}
	if want := []string{"ring", "pci", "console", "broken"}; !slices.Equal(loaded, want) {
		t.Errorf("at boot %v, want %v", loaded, want)
	}
	loaded = nil
	_ = l.run(sysfs(), true)
	if want := []string{"blk", "overlay"}; !slices.Equal(loaded, want) {
		t.Errorf("later %v, want %v", loaded, want)
	}
	loaded = nil
	if err := errors.Join(l.fileSystem("xfs"), l.fileSystem("ext4")); err != nil {
		t.Error(err)
	}
	if want := []string{"crc32c", "xfs"}; !slices.Equal(loaded, want) {
		t.Errorf("for its file systems %v, want %v", loaded, want)
	}
	if none, err := openLoader(t.TempDir()); err != nil || none.run(sysfs(), true) != nil {
		t.Errorf("a kernel with all built in: %v", err)
	}
}

func TestOnline(t *testing.T) {
	if n, err := onlineCPUs(sysfs()); err != nil || n != 2 {
		t.Errorf("%d %v", n, err)
	}
	if n, err := onlineMemory(sysfs()); err != nil || n != 256<<20 {
		t.Errorf("%d %v", n, err)
	}
	for s, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5} {
		if n, err := countList(s); err != nil || n != want {
			t.Errorf("%q: %d %v", s, n, err)
		}
	}
	for _, s := range []string{"", "a", "3-1", "-1", "0-99999999", "1,"} {
		if n, err := countList(s); err == nil {
			t.Errorf("%q is %d", s, n)
		}
	}
}

// TestBringOnline writes what is off and nothing else.
func TestBringOnline(t *testing.T) {
	dir := t.TempDir()
	files := map[string][2]string{
		"devices/system/cpu/cpu1/online":       {"1\n", "1\n"},
		"devices/system/cpu/cpu2/online":       {"0\n", "1"},
		"devices/system/cpu/cpufreq/online":    {"0\n", "0\n"},
		"devices/system/memory/memory0/state":  {"online\n", "online\n"},
		"devices/system/memory/memory40/state": {"offline\n", "online"},
		"devices/system/memory/memory41/state": {"going-offline\n", "going-offline\n"},
	}
	for name, c := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(c[0]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := bringOnline(root); err != nil {
		t.Fatal(err)
	}
	for name, c := range files {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.TrimSpace(string(b)) != strings.TrimSpace(c[1]) {
			t.Errorf("%s is %q, want %q", name, b, c[1])
		}
	}
}

func TestMemTotal(t *testing.T) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := memTotal(string(b)); err != nil || n < 64<<20 {
		t.Errorf("%d %v", n, err)
	}
	if _, err := memTotal("MemFree: 1 kB\n"); err == nil {
		t.Error("no MemTotal is no error")
	}
}

// TestMountsLieInOrder: a mount never hides an earlier one.
func TestMountsLieInOrder(t *testing.T) {
	for _, plan := range [][]mount{early(), inRoot(true)} {
		for i, m := range plan {
			for _, earlier := range plan[:i] {
				if m.target == earlier.target || strings.HasPrefix(earlier.target, m.target+"/") {
					t.Errorf("%s hides %s", m.target, earlier.target)
				}
			}
		}
	}
}

func TestIsInit(t *testing.T) {
	if IsInit([]string{Init}) {
		t.Error("a test is no first process")
	}
}

func FuzzOrder(f *testing.F) {
	f.Add("always a b\nlate c\n")
	f.Fuzz(func(t *testing.T, s string) {
		steps := parseOrder(s)
		if diff := cmp.Diff(steps, parseOrder(FormatOrder(steps))); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzLists(f *testing.F) {
	f.Add("0-1,3", "MemTotal:         497032 kB\n")
	f.Fuzz(func(t *testing.T, list, meminfo string) {
		if n, err := countList(list); err == nil && n <= 0 {
			t.Errorf("%q has %d", list, n)
		}
		if n, err := memTotal(meminfo); err == nil && n < 0 {
			t.Errorf("%q has %d", meminfo, n)
		}
	})
}
