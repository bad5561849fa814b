package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/collect/collecttest"
	"tare/record"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m)) }

func TestContract(t *testing.T) {
	s := collecttest.Subject{Collector: New()}
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		s.Partial = "no pressure on this kernel"
	}
	collecttest.Run(t, s)
}

func TestContractCaptured(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: NewAt("testdata/proc")})
}

var approx = cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })

func TestFigures(t *testing.T) {
	want := map[string]float64{
		"system_cpu_softirq{cpu=1}": 0, // it served most since the host started
		"system_cpu{mode=user}":     155.87, "system_cpu{mode=nice}": 0, "system_cpu{mode=system}": 43.53, "system_cpu{mode=idle}": 1986.76,
		"system_cpu{mode=iowait}": 3.93, "system_cpu{mode=irq}": 0, "system_cpu{mode=softirq}": 0.99, "system_cpu{mode=steal}": 1.19,
		"system_context_switches{}": 658675, "system_forks{}": 9449, "system_running{}": 1, "system_blocked{}": 1,
		"system_softirqs{kind=net_tx}": 6, "system_softirqs{kind=net_rx}": 24909, "system_softirqs{kind=block}": 66210,
		"system_memory_available{}":                 24290032 * 1024,
		"system_page_cache{}":                       (983328 + 891512) * 1024,
		"system_pressure{resource=cpu,who=some}":    50.688740,
		"system_pressure{resource=cpu,who=full}":    0,
		"system_pressure{resource=io,who=some}":     4.022194,
		"system_pressure{resource=io,who=full}":     3.097029,
		"system_pressure{resource=memory,who=some}": 0,
		"system_pressure{resource=memory,who=full}": 0,
	}
	if d := cmp.Diff(want, collecttest.Figures(t, NewAt("testdata/proc"))(), approx); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestIdleDoesNotFall(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "stat"), "cpu  1 2 3 400 50\n")
	p, err := NewAt(dir).Open(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	idle := func() float64 {
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got {
			if s.Labels == "mode=idle" {
				return s.Value
			}
		}
		t.Fatal("no idle")
		return 0
	}
	a := idle()
	write(t, filepath.Join(dir, "stat"), "cpu  1 2 3 399 50\n")
	if b := idle(); a != 4 || b != 4 {
		t.Errorf("idle %v, then %v; want 4 s both times", a, b)
	}
}

// TestInterrupts: a processor that serves interrupts is told from the others, which have
// no series.
func TestInterrupts(t *testing.T) {
	dir := t.TempDir()
	lines := func(two uint64) {
		write(t, filepath.Join(dir, "stat"), fmt.Sprintf("cpu  1 0 3 400 50 0 9 0\ncpu0 1 0 1 100 0 2 3 0\ncpu1 0 0 1 100 0 0 0 0\ncpu2 0 0 1 100 0 1 %d 0\n", two))
	}
	lines(0)
	p, err := NewAt(dir).Open(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	read := func() map[record.Labels]float64 {
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[record.Labels]float64{}
		for _, s := range got {
			if s.Name == interruptsName {
				out[s.Labels] = s.Value
			}
		}
		return out
	}
	if got := read(); len(got) != 1 || got["cpu=0"] != 0 {
		t.Errorf("at first %v, want the one that served most", got)
	}
	lines(250)
	if got := read(); len(got) != 2 || got["cpu=0"] != 0 || got["cpu=2"] != 2.5 {
		t.Errorf("then %v, want 2.5 s of processor 2", got)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := NewAt(dir).Check(); err == nil {
		t.Error("an empty tree passes Check")
	}
	write(t, filepath.Join(dir, "stat"), "intr 1 2 3\n")
	if err := NewAt(dir).Check(); err == nil || !strings.Contains(err.Error(), "stat") {
		t.Errorf("Check = %v", err)
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	p, err := New().Open(context.Background(), nil)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	collecttest.AllocatesNothing(t, p)
}

func FuzzParseStat(f *testing.F) {
	b, err := os.ReadFile("testdata/proc/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("cpu 1 2 3"))
	f.Add([]byte("softirq 1\ncpu  1 2 3 4\nctxt 18446744073709551616"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := parseStat(b, nil)
		if ok && !strings.Contains(string(b), "cpu") {
			t.Errorf("processors in %q", b)
		}
		p := &probe{}
		for _, x := range p.appendStat(nil, &s) {
			if x.Value < 0 || x.Unit != record.Second && x.Unit != record.Count {
				t.Errorf("%v of %q", x, b)
			}
		}
	})
}
