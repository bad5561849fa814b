package model_test

import (
	"math"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/model"
)

// The published experiment's levels; 0 is no CPU limit, and natively there is no default_vcpus.
var (
	connections = []int{1, 4, 16}
	sizes       = []int{16, 256, 4096, 65536}
	limits      = []float64{0, 1, 2, 4, 8}
	vcpus       = []int{1, 2, 3, 4, 5, 7, 8, 9, -1}
)

const native = 0

func cell(t testing.TB, mode model.Mode, conns, size int, limit float64, boot int) model.Config {
	t.Helper()
	c := model.Default()
	c.Load.Mode, c.Load.Connections, c.Load.Size = mode, conns, size
	if boot == native {
		return c.Native(limit)
	}
	c, err := c.Sized(boot, limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// performance is operations a second.
func performance(t *testing.T, mode model.Mode, conns, size int, limit float64, boot int) float64 {
	t.Helper()
	c := cell(t, mode, conns, size, limit, boot)
	c.Load.Duration = 1
	tot := run(t, c).Totals
	return tot.Operations / tot.Window
}

// geometric is the mean over sizes of one ratio to native.
func geometric(t *testing.T, mode model.Mode, conns int, limit float64, boot int, of ...int) float64 {
	t.Helper()
	var sum float64
	for _, size := range of {
		sum += math.Log(performance(t, mode, conns, size, limit, boot) / performance(t, mode, conns, size, limit, native))
	}
	return math.Exp(sum / float64(len(of)))
}

// TestOneStream: default settings, one stream: 20 to 50 % below.
func TestOneStream(t *testing.T) {
	for _, mode := range []model.Mode{model.RR, model.Stream} {
		r := geometric(t, mode, 1, 0, 1, sizes...)
		t.Logf("%s: %.3g of native", mode, r)
		if r < 0.5 || r > 0.8 {
			t.Errorf("%s: %.3g of native", mode, r)
		}
	}
}

// TestAddedTime: one stream, latency: a constant of about 30 us. A whole 64 KiB
// adds some: the guest copies at its factor, and wakes a second vCPU.
func TestAddedTime(t *testing.T) {
	for _, size := range sizes {
		added := 1e6/performance(t, model.RR, 1, size, 0, 2) - 1e6/performance(t, model.RR, 1, size, 0, native)
		t.Logf("%d B: %.3g us", size, added)
		if added < 22 || added > 46 {
			t.Errorf("%d B: %.3g us", size, added)
		}
	}
}

// TestTwoMatch: default_vcpus 2 without a limit gives the non-sandboxed throughput.
func TestTwoMatch(t *testing.T) {
	for _, conns := range connections[1:] {
		if r := geometric(t, model.Stream, conns, 0, 2, 4096, 65536); r < 0.92 || r > 1.05 {
			t.Errorf("%d connections: %.3g of native", conns, r)
		}
	}
}

// TestLowLimit: under a low limit, more default_vcpus make throughput and latency worse.
func TestLowLimit(t *testing.T) {
	for _, mode := range []model.Mode{model.RR, model.Stream} {
		for _, boot := range []int{4, 9} {
			few, many := performance(t, mode, 16, 4096, 1, 1), performance(t, mode, 16, 4096, 1, boot)
			if many > 0.95*few {
				t.Errorf("%s, default_vcpus %d: %.3g of default_vcpus 1", mode, boot, many/few)
			}
		}
	}
}

// TestHelperSaturates: 16 streams and room in guest and quota: one vhost thread is
// nearly full, and latency is a constant factor more.
func TestHelperSaturates(t *testing.T) {
	lo, hi := math.Inf(1), 0.0
	for _, size := range sizes {
		c := cell(t, model.RR, 16, size, 8, 1)
		r := run(t, c)
		s := find(r, "cpu_time", "end=server,role=vhost")
		n := len(s.V) - 1
		busy := (s.V[n] - s.V[2]) / (s.T[n] - s.T[2]).Seconds()
		if busy < 0.8 || busy > 1.001 {
			t.Errorf("%d B: vhost %.3g of a core", size, busy)
		}
		n = len(find(r, "cgroup_throttled_periods", "end=server").V) - 1
		if x, of := find(r, "cgroup_throttled_periods", "end=server").V[n], find(r, "cgroup_periods", "end=server").V[n]; x > 0.2*of {
			t.Errorf("%d B: %g of %g periods throttled", size, x, of)
		}
		f := performance(t, model.RR, 16, size, 8, native) / performance(t, model.RR, 16, size, 8, 1)
		lo, hi = min(lo, f), max(hi, f)
	}
	t.Logf("factors %.3g to %.3g", lo, hi)
	if lo < 1.5 || hi > 1.4*lo {
		t.Errorf("factors %.3g to %.3g", lo, hi)
	}
}

// TestPriceOfTheCure: default_vcpus 2, limit 8, 16 streams of 64 KiB: the same
// throughput for over twice the CPU.
func TestPriceOfTheCure(t *testing.T) {
	a, b := run(t, cell(t, model.Stream, 16, 65536, 8, 2)).Totals, run(t, cell(t, model.Stream, 16, 65536, 8, native)).Totals
	if r := a.Bytes / b.Bytes; r < 0.95 {
		t.Errorf("throughput %.3g of native", r)
	}
	t.Logf("%.3g and %.3g cores", a.CPU/a.Window, b.CPU/b.Window)
	if r := a.CPU / b.CPU; r < 2 || r > 3.5 {
		t.Errorf("CPU %.3g of native: %.3g and %.3g cores", r, a.CPU/a.Window, b.CPU/b.Window)
	}
}

// matrix runs the experiment's every cell on two cores.
func matrix(t testing.TB) (cells int) {
	work := make(chan model.Config)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for c := range work {
				if _, err := model.Run(c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, mode := range []model.Mode{model.RR, model.Stream} {
		for _, conns := range connections {
			for _, size := range sizes {
				for _, limit := range limits {
					for _, boot := range append([]int{native}, vcpus...) {
						work <- cell(t, mode, conns, size, limit, boot)
						cells++
					}
				}
			}
		}
	}
	close(work)
	wg.Wait()
	return cells
}

// TestMatrix runs on demand: TARE_MATRIX=1 go test -run TestMatrix -v ./model
func TestMatrix(t *testing.T) {
	if os.Getenv("TARE_MATRIX") == "" {
		t.Skip("takes most of a minute of two cores; TARE_MATRIX=1 runs it")
	}
	start, before := time.Now(), processor(t)
	n := matrix(t)
	t.Logf("%d cells in %.1f s, %.1f s of a processor", n, time.Since(start).Seconds(), processor(t)-before)
}

// processor is the CPU time of this process, seconds: what a busy machine does not change much.
func processor(t *testing.T) float64 {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}
