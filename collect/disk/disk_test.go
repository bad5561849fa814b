package disk

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/collect/collecttest"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m)) }

func TestContract(t *testing.T) { collecttest.Run(t, collecttest.Subject{Collector: New()}) }

func captured() *Collector { return NewAt("testdata/virtio/proc", "testdata/virtio/sys") }

func TestContractCaptured(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: captured()})
}

// TestFigures: the disk alone, in seconds and bytes.
func TestFigures(t *testing.T) {
	want := map[string]float64{
		"device_busy{device=vda}": 93.564, "device_queue{device=vda}": 700.403,
		"device_read{device=vda}": 56155050 * 512, "device_wrote{device=vda}": 34922424 * 512,
		"device_requests{device=vda}": 667988 + 75905, "device_flushes{device=vda}": 8135, "device_flush_time{device=vda}": 0.752,
	}
	if d := cmp.Diff(want, collecttest.Figures(t, captured())()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func tree(t *testing.T, stats string) (*Collector, func(string)) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "block", "sda", "device"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "diskstats"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(stats)
	return NewAt(dir, dir), write
}

// TestCountersGoOnOverTheirEnd: io_ticks is of 32 bits, and a disk may go and come back.
func TestCountersGoOnOverTheirEnd(t *testing.T) {
	c, write := tree(t, "8 0 sda 1 0 8 1 1 0 8 1 0 4294967000 4294966000\n")
	next := collecttest.Figures(t, c)
	first := next()
	write("8 0 sda 1 0 16 1 1 0 8 1 0 704 1704\n")
	second := next()
	want := map[string]float64{"device_busy{device=sda}": 1, "device_queue{device=sda}": 3, "device_read{device=sda}": 8 * 512, "device_wrote{device=sda}": 0}
	got := map[string]float64{}
	for k := range want {
		got[k] = float64(int(1000*(second[k]-first[k])+0.5)) / 1000
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	write("8 16 sdb 1 0 16 1 1 0 8 1 0 704 1704\n")
	if d := cmp.Diff(second, next()); d != "" {
		t.Errorf("a disk that was taken out: %s", d)
	}
	write("8 0 sda 1 0 2 1 1 0 8 1 0 5 6\n")
	if v := next()["device_read{device=sda}"] - second["device_read{device=sda}"]; v != 2*512 {
		t.Errorf("a disk that began anew gave %v bytes, want 1024", v)
	}
}

func TestCheck(t *testing.T) {
	if err := captured().Check(); err != nil {
		t.Error(err)
	}
	c, _ := tree(t, "8 16 sdb 1 0 8 1 1 0 8 1 0 5 6\n")
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("Check of a machine without a disk: %v", err)
	}
	if err := NewAt(t.TempDir(), t.TempDir()).Check(); err == nil {
		t.Error("empty trees pass Check")
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	p, err := captured().Open(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	collecttest.AllocatesNothing(t, p)
}

func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/virtio/proc/diskstats")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		f.Add([]byte(line))
	}
	f.Add([]byte("8 0 sda 1 2 3 4 5 6 7 8 9 10 18446744073709551616"))
	f.Add([]byte("8 0  1 2 3 4 5 6 7 8 9 10 11"))
	f.Fuzz(func(t *testing.T, line []byte) {
		name, got, ok := parse(line)
		if !ok {
			return
		}
		if len(name) == 0 || strings.ContainsRune(string(name), ' ') {
			t.Errorf("the name %q in %q", name, line)
		}
		var d device
		d.take(got)
		d.take(figures{})
		for _, s := range d.samples(nil) {
			if s.Value < 0 {
				t.Errorf("%v of %q", s, line)
			}
		}
	})
}
