package model

import (
	"testing"

	"tare/record"
)

// throughput of a load in the default machine, noise aside.
func throughput(t *testing.T, change func(*Disk)) float64 {
	t.Helper()
	d := DefaultDisk()
	d.Noise = Noise{}
	change(&d)
	r, err := RunDisk(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Reading.Samples {
		if s.Name == "throughput" {
			return s.Value
		}
	}
	t.Fatal("no throughput")
	return 0
}

// TestDiskFindings are those of the published experiment, as kinds of findings.
func TestDiskFindings(t *testing.T) {
	at := func(size, jobs, depth, threads int) float64 {
		return throughput(t, func(d *Disk) { d.Size, d.Jobs, d.Depth, d.Threads = size, jobs, depth, threads })
	}
	for _, c := range []struct {
		name       string
		size, load int
		threads    int
		lo, hi     float64 // of the gain over the main loop
	}{
		{"little concurrency gains little", 2048, 1, 16, 1.05, 1.35},
		{"one thread helps much concurrency a little", 2048, 16, 1, 1.1, 1.5},
		{"many threads help it much", 2048, 16, 12, 4, 7},
		{"large requests are at the device's limit", 1 << 20, 16, 12, 0.97, 1.03},
	} {
		if gain := at(c.size, c.load, c.load, c.threads) / at(c.size, c.load, c.load, 0); gain < c.lo || gain > c.hi {
			t.Errorf("%s: %.2f times, want %g to %g", c.name, gain, c.lo, c.hi)
		}
	}
	if four, eight := at(2048, 4, 16, 4), at(2048, 4, 16, 8); eight > 1.02*four {
		t.Errorf("four jobs have four queues: 8 threads %g, 4 threads %g", eight, four)
	}
}

// TestDiskRate: at a rate, the load is sent as long as the device can take it, and its latency rises before. With few in flight the
// latency hides an overload, as fio's does, but not what was not sent.
func TestDiskRate(t *testing.T) {
	at := func(rate float64, jobs int) (sent, offered, p99 float64) {
		d := DefaultDisk()
		d.Machine, d.Noise, d.Jobs, d.Depth, d.Rate, d.Device.Requests = false, Noise{}, jobs, 1, rate, 10_000
		r, err := RunDisk(d)
		if err != nil {
			t.Fatal(err)
		}
		x := record.Trial{Samples: r.Reading.Samples}
		sent, _ = x.Sample("iops")
		p99, _ = x.Sample("latency_p99")
		return sent, x.Offered(), p99
	}
	last := 0.0
	for _, rate := range []float64{1000, 5000, 9000} {
		sent, offered, p99 := at(rate, 64)
		if offered < 0.99 || sent < 0.93*rate || sent > 1.07*rate || p99 < last {
			t.Errorf("rate %g: %g were sent, a share of %g, p99 %g", rate, sent, offered, p99)
		}
		last = p99
	}
	if sent, offered, p99 := at(20_000, 64); sent > 10_100 || offered < 0.45 || offered > 0.55 || p99 < 5e-3 {
		t.Errorf("twice what the device can do: %g were sent, a share of %g, p99 %g", sent, offered, p99)
	}
	if _, offered, p99 := at(20_000, 1); offered > 0.4 || p99 > 0.3e-3 {
		t.Errorf("one in flight: a share of %g was sent, p99 %g", offered, p99)
	}
	d := DefaultDisk()
	if d.Rate = -1; d.Check() == nil {
		t.Error("a negative rate is possible")
	}
}

func TestDiskLaws(t *testing.T) {
	native := func(d *Disk) { d.Machine = false }
	// A closed loop of one request: its rate is one over its time.
	if got := throughput(t, func(d *Disk) { native(d); d.Size = 1 }); got < 0.99/82.6e-6 || got > 1.01/82.6e-6 {
		t.Errorf("one request at once: %g a second, want one each 2 + 0.6 + 80 us", got)
	}
	if got := throughput(t, func(d *Disk) { native(d); d.Size, d.Jobs, d.Depth = 1<<20, 4, 4 }); got < 11.5e9 || got > 12e9 {
		t.Errorf("large requests: %g B/s, want the device's 12e9", got)
	}
	d := DefaultDisk()
	d.Jobs = 4
	a, errA := RunDisk(d)
	b, errB := RunDisk(d)
	if errA != nil || errB != nil || a.Reading.Samples[0].Value != b.Reading.Samples[0].Value {
		t.Error("the same seed gives other figures")
	}
	for _, change := range []func(*Disk){
		func(d *Disk) { d.Jobs = 0 }, func(d *Disk) { d.Jobs, d.Depth = 1<<20, 1<<20 }, func(d *Disk) { d.Size = 0 },
		func(d *Disk) { d.VCPUs = 0 }, func(d *Disk) { d.Threads = -1 }, func(d *Disk) { d.Device.ReadRate = 0 },
	} {
		d := DefaultDisk()
		change(&d)
		if _, err := RunDisk(d); err == nil {
			t.Errorf("no error of %+v", d)
		}
	}
}
