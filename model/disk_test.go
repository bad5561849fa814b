package model

import (
	"testing"
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
