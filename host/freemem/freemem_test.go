package freemem

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

func capture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCapture: the files are one moment of Linux 6.18 with two CPUs, while
// programs were compiled; the sum was made by other means.
func TestCapture(t *testing.T) {
	got, err := parse(strings.NewReader(capture(t, "meminfo-6.18.txt")), strings.NewReader(capture(t, "zoneinfo-6.18.txt")), 4096)
	if want := int64(22329704+30456+1652124-10120+356524)<<10 + 37136*4096; err != nil || got != want {
		t.Errorf("%d, %v; want %d", got, err, want)
	}
}

// meminfo is what a page can go through without a change of the sum.
const meminfo = "MemTotal: 900 kB\nMemFree: 400 kB\nMemAvailable: 444 kB\nBuffers: 8 kB\nCached: 80 kB\nShmem: 20 kB\nKReclaimable: 40 kB\nSReclaimable: 36 kB\n"

func TestParse(t *testing.T) {
	const zones = "Node 0, zone  DMA\n  pagesets\n    cpu: 0\n              count: 3\n              high:  186\n    cpu: 1\n              count:    4\nNode 1, zone Normal\n  pagesets\n    cpu: 0\n              count:    10\n"
	for _, c := range []struct {
		name           string
		meminfo, zones string
		want           int64
		err            string
	}{
		{"all", meminfo, zones, 508<<10 + 17*4096, ""},
		{"freed by a CPU, on its list", strings.Replace(meminfo, "MemFree: 400", "MemFree: 392", 1), strings.Replace(zones, "count: 3", "count: 5", 1), 508<<10 + 17*4096, ""},
		{"read from a disk", strings.NewReplacer("MemFree: 400", "MemFree: 392", "Cached: 80", "Cached: 88").Replace(meminfo), zones, 508<<10 + 17*4096, ""},
		{"before Linux 4.20", strings.Replace(meminfo, "KReclaimable: 40 kB\n", "", 1), zones, 504<<10 + 17*4096, ""},
		{"a tmpfs is memory of programs", strings.NewReplacer("MemFree: 400", "MemFree: 392", "Cached: 80", "Cached: 88", "Shmem: 20", "Shmem: 28").Replace(meminfo), zones, 500<<10 + 17*4096, ""},
		{"no pagesets", meminfo, "Node 0, zone  DMA\n", 0, "no pagesets"},
		{"a count that is none", meminfo, strings.Replace(zones, "count: 3", "count: x", 1), 0, "cannot read a count of pages"},
		{"a count that cannot be", meminfo, strings.Replace(zones, "count: 3", "count: 18446744073709551615", 1), 0, "cannot read a count of pages"},
		{"no free memory", strings.Replace(meminfo, "MemFree", "Free", 1), zones, 0, "no valid MemFree"},
		{"more than can be", strings.Replace(meminfo, "Cached: 80", "Cached: 18446744073709551615", 1), zones, 0, "no valid Cached"},
		{"nothing", "", "", 0, "no valid MemFree"},
	} {
		got, err := parse(strings.NewReader(c.meminfo), strings.NewReader(c.zones), 4096)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || err == nil && got != c.want {
			t.Errorf("%s: %d, %v; want %d, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestMissing(t *testing.T) {
	dir := fstest.MapFS{"meminfo": {Data: []byte(meminfo)}}
	if _, err := read(dir); err == nil || !strings.Contains(err.Error(), "zoneinfo") {
		t.Errorf("%v, want an error that names the missing file", err)
	}
}

// TestFreed takes memory of this host right after as much was given back: it shows
// as taken, from whichever list its pages come. MemAvailable shows a third of it, or
// nothing.
func TestFreed(t *testing.T) {
	const freed, taken = 300 << 20, 100 << 20
	var got []int64
	for range 20 { // others use this host too
		hold(t, freed)()
		time.Sleep(100 * time.Millisecond)
		before := now(t)
		release := hold(t, taken)
		after := now(t)
		release()
		if got = append(got, before-after); got[len(got)-1] > taken*9/10 && got[len(got)-1] < taken*11/10 {
			return
		}
	}
	t.Errorf("%d bytes were taken, and what can be had fell by %d", taken, got)
}

func now(t *testing.T) int64 {
	t.Helper()
	n, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// hold takes memory page by page, as a program does that fills itself.
func hold(t *testing.T, size int) func() {
	t.Helper()
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Madvise(m, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses it
	for i := 0; i < size; i += os.Getpagesize() {
		m[i] = 1
	}
	return func() {
		if err := unix.Munmap(m); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(capture(f, "meminfo-6.18.txt"), capture(f, "zoneinfo-6.18.txt"))
	f.Add(meminfo, "  pagesets\n    cpu: 0\n  count: 3\n")
	f.Fuzz(func(t *testing.T, meminfo, zoneinfo string) {
		got, err := parse(strings.NewReader(meminfo), strings.NewReader(zoneinfo), 64<<10)
		if limit := int64(maxBytes) * 8; err == nil && (got > limit || got < -limit) {
			t.Errorf("%d bytes", got)
		}
	})
}
