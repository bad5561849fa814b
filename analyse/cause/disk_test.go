package cause

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/record"
)

// diskTrial is a trial of a native process beside a disk that is never idle.
func diskTrial(responses map[string]float64, labelled ...record.Sample) *record.Trial {
	t := &record.Trial{Seq: 1, Block: 1, Attempt: 1, Cell: record.Cell{{Factor: "sandbox", Value: "process"}}, Status: record.OK}
	add := func(name string, v float64, labels ...string) {
		t.Samples = append(t.Samples, record.Sample{Name: name, Labels: record.MakeLabels(labels...), Value: v})
	}
	for name, v := range responses {
		add(name, v)
	}
	add(cpuTime, 0.1, "end", "server", "role", "workload")
	add(record.ThreadBusiest, 0.1, "end", "server", "role", "workload")
	add(cgroupCPU, 0.11, "end", "server")
	add(runWait, 0.01, "end", "server", "role", "workload")
	add(cpuTime, 0.2, "end", "client", "role", "workload")
	add(cpuTime, 0.05, "role", "harness")
	for mode, v := range map[string]float64{"user": 0.6, "system": 0.3, "nice": 0.05, "steal": 0.05, "softirq": 0.2, "idle": 0.8} {
		add(systemCPU, v, "mode", mode)
	}
	add(deviceBusy, 0.98, "device", "vda")
	add(deviceQueue, 7.5, "device", "vda")
	add(deviceRead, 3e7, "device", "vda")
	add(deviceWrote, 1e7, "device", "vda")
	t.Samples = append(t.Samples, labelled...)
	return t
}

// TestWhoseDisk: a disk holds up those who read and write it, not those who run beside
// them. Where cgroups are not charged, a disk benchmark's word is taken.
func TestWhoseDisk(t *testing.T) {
	charged := func(name string, v float64) record.Sample {
		return record.Sample{Name: name, Labels: record.MakeLabels("end", "server"), Value: v}
	}
	network := []record.Response{{Name: "rate", Unit: record.PerSecond, Operation: "request"}, {Name: "latency_mean", Unit: record.Second, Operation: "request"}}
	disk := []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Operation: "byte"}, {Name: "iops", Unit: record.PerSecond, Operation: "request"}}
	slow := map[string]float64{"rate": 250, "latency_mean": 0.004}
	direct := map[string]float64{"throughput": 3.8e7, "iops": 9500}
	cached := map[string]float64{"throughput": 3e9, "iops": 7e5}
	for _, c := range []struct {
		name      string
		responses []record.Response
		trial     *record.Trial
		device    bool
		part      float64
	}{
		{"requests of a network, cgroups not charged", network, diskTrial(slow), false, math.NaN()},
		{"requests of a network, cgroups charged", network, diskTrial(slow, charged(cgroupRead, 1e4), charged(cgroupWrote, 1e4)), false, 0.0005},
		{"a database that writes and reads", network, diskTrial(slow, charged(cgroupRead, 2.9e7), charged(cgroupWrote, 9e6)), true, 0.95},
		{"a disk benchmark, cgroups not charged", disk, diskTrial(direct), true, 0.95},
		{"a disk benchmark from memory, cgroups not charged", disk, diskTrial(cached), false, 0},
		{"a disk benchmark on another disk, cgroups charged", disk, diskTrial(direct, charged(cgroupRead, 1e3)), false, 2.5e-5},
	} {
		r := new(Reader)
		r.Take(c.trial)
		s := Stratum{Finding: Finding{Response: c.responses[0]}, Endpoints: []string{"server"}, Responses: c.responses,
			Cells: []Cell{{Finding: Finding{CellKey: record.CellKey{Cell: c.trial.Cell, Baseline: true}}, Load: 8, Trials: map[int]*record.Trial{1: c.trial}}}}
		got := Build(0.95, r, []Stratum{s})[0]
		if (got.Cause == Device || slices.Contains(got.Among, Device)) != c.device {
			t.Errorf("%s: %s: %s", c.name, got.Cause, got.Text)
		}
		part, others := math.NaN(), math.NaN()
		for _, x := range got.Readings {
			switch x.Name {
			case "its bytes that are the workload's":
				part = x.Value
			case "used by others than this trial":
				others = x.Value
			}
		}
		if math.Abs(part-c.part) > 1e-3*c.part || math.IsNaN(part) != math.IsNaN(c.part) {
			t.Errorf("%s: %g of the bytes are its own, want %g", c.name, part, c.part)
		}
		if want := 1.0 - 0.11 - 0.2 - 0.05; math.Abs(others-want) > 1e-6 {
			t.Errorf("%s: others used %g cores, want %g", c.name, others, want)
		}
	}
}

// TestComparedLoad: a study that compares how many requests are in flight has them all in one stratum. The figures
// are those of a virtio disk.
func TestComparedLoad(t *testing.T) {
	responses := []record.Response{{Name: "iops", Unit: record.PerSecond, Better: record.Higher, Operation: "request"}, {Name: "throughput", Unit: record.BytesPerSecond, Operation: "byte"}}
	shared := record.Cell{{Factor: "sandbox", Value: "process"}}
	s := Stratum{Finding: Finding{Response: responses[0], CellKey: record.CellKey{Shared: shared}}, Endpoints: []string{"server"}, Responses: responses}
	r := new(Reader)
	for i, c := range []struct {
		depth             string
		load, iops, queue float64
	}{{"1", 1, 14.5e3, 0.85}, {"4", 4, 51e3, 2.8}, {"16", 16, 103e3, 12}, {"64", 64, 110e3, 57}} {
		cell := append(record.Cell{{Factor: "iodepth", Value: c.depth}}, shared...)
		x := Cell{Finding: Finding{CellKey: record.CellKey{Treatment: "iodepth=" + c.depth, Cell: cell, Baseline: c.depth == "16"}}, Load: c.load, Trials: map[int]*record.Trial{}}
		ratio := c.iops / 103e3
		x.Ratio, x.Costs = &ratio, ratio < 0.97
		for block := 1; block <= 3; block++ {
			n := 1 + 0.01*float64(block)
			trial := diskTrial(map[string]float64{"iops": n * c.iops, "throughput": n * 4096 * c.iops})
			for k := range trial.Samples {
				switch y := &trial.Samples[k]; y.Name {
				case deviceQueue:
					y.Value = c.queue
				case deviceRead:
					y.Value = n * 4096 * c.iops
				case deviceWrote:
					y.Value = 0
				}
			}
			trial.Seq, trial.Block, trial.Cell = 10*i+block, block, cell
			r.Take(trial)
			x.Trials[block] = trial
		}
		s.Cells = append(s.Cells, x)
	}
	for i, f := range Build(0.95, r, []Stratum{s}) {
		if want := []Name{Depth, Depth, Device, Device}[i]; f.Cause != want {
			t.Errorf("%s: %s of %v, want %s: %s", f.Treatment, f.Cause, f.Among, want, f.Text)
		}
	}
}

// TestMixed: the processor time of a trial that does several things says nothing of one of them.
func TestMixed(t *testing.T) {
	rate := func(name, operation string) record.Response {
		return record.Response{Name: name, Unit: record.PerSecond, Operation: operation}
	}
	for _, c := range []struct {
		of   []record.Response
		want bool
	}{
		{[]record.Response{rate("open", ""), rate("stat", "")}, true},
		{[]record.Response{rate("open", "operation")}, false},
		{[]record.Response{rate("GET", ""), {Name: "p50", Unit: record.Second}}, false},
		{[]record.Response{rate("iops", "request"), rate("other", "")}, false},
	} {
		s := Stratum{Finding: Finding{Response: c.of[0]}, Responses: c.of}
		if s.mixed() != c.want {
			t.Errorf("%+v: mixed %v", c.of, s.mixed())
		}
		f := facts{own: native(fRate, math.NaN(), fTime, math.NaN(), fValue, 1e3), base: native(fRate, math.NaN(), fTime, math.NaN(), fValue, 1e5), mixed: s.mixed(), costs: true}
		if v := decide(rules(), &f); (v.cause == Other) == c.want {
			t.Errorf("%+v: %s", c.of, v.cause)
		}
	}
}

// TestPageCacheTold: bytes that no disk had are those of the page cache only if the trials are long enough to tell.
func TestPageCacheTold(t *testing.T) {
	responses := []record.Response{{Name: "iops", Unit: record.PerSecond, Better: record.Higher, Operation: "request"}, {Name: "throughput", Unit: record.BytesPerSecond, Operation: "byte"}}
	type side struct{ throughput, reached, window, load float64 } // load 0: not told
	for _, c := range []struct {
		name      string
		own, base side
		named     bool
		because   string // "" and not named: it is not a candidate
	}{
		{"reads from memory beside reads past it", side{3e9, 0, 2, 2}, side{1e8, 1e8, 2, 2}, true, ""},
		{"the same in half a second", side{3e9, 0, 0.9, 0.5}, side{1e8, 6e7, 0.9, 0.5}, true, ""},
		{"half a second of load in a long window", side{1e8, 4e7, 1.3, 0.5}, side{1e8, 9.5e7, 0.53, 0.5}, false, ""},
		{"the same, and fio does not say so", side{1e8, 4e7, 1.3, 0}, side{1e8, 9.5e7, 0.53, 0}, false, "the measured window of 1.30 s is too short"},
		{"it does not say so, and the window is long", side{3e9, 0, 20, 0}, side{1e8, 1e8, 20, 0}, true, ""},
		{"few bytes", side{1e7, 0, 1, 1}, side{1e6, 1e6, 1, 1}, false, "only 10 MB were read and written in a trial"},
		{"both write to the page cache, and some of it reaches a disk", side{1e9, 0, 3, 3}, side{1e9, 7e8, 3, 3}, false, "both use the page cache"},
		{"the same for a minute", side{1e9, 0, 60, 60}, side{1e9, 7e8, 60, 60}, true, ""},
	} {
		r := new(Reader)
		s := Stratum{Finding: Finding{Response: responses[0]}, Endpoints: []string{"server"}, Responses: responses}
		for i, x := range []side{c.base, c.own} {
			cell := record.Cell{{Factor: "sandbox", Value: []string{"process", "vm"}[i]}}
			told := map[string]float64{"throughput": x.throughput, "iops": x.throughput / 4096}
			if x.load > 0 {
				told[record.LoadTime] = x.load
			}
			ratio := c.own.throughput / c.base.throughput
			y := Cell{Finding: Finding{CellKey: record.CellKey{Treatment: cell[0].Value, Cell: cell, Baseline: i == 0}, Ratio: &ratio}, Load: 4, Trials: map[int]*record.Trial{}}
			for block := 1; block <= 3; block++ {
				trial := diskTrial(told, record.Sample{Name: cgroupRead, Labels: record.MakeLabels("end", "server"), Value: x.reached})
				trial.Seq, trial.Block, trial.Cell = 10*i+block, block, cell
				trial.Phases = []record.Phase{{Name: record.PhaseRun, Duration: time.Duration(x.window * 1e9)}}
				r.Take(trial)
				y.Trials[block] = trial
			}
			s.Cells = append(s.Cells, y)
		}
		got := Build(0.95, r, []Stratum{s})[1]
		if (got.Cause == PageCache) != c.named || slices.Contains(got.Among, PageCache) != (c.because != "") || !strings.Contains(got.Text, c.because) {
			t.Errorf("%s: %s of %v: %s", c.name, got.Cause, got.Among, got.Text)
		}
	}
}

// TestCopiesShare: with several copies at once, the ends are those of one of them, and the rates are of all. The cause of a copy is that of
// one that is alone.
func TestCopiesShare(t *testing.T) {
	responses := []record.Response{{Name: "iops", Unit: record.PerSecond, Better: record.Higher, Operation: "request"}, {Name: "throughput", Unit: record.BytesPerSecond, Operation: "byte"}}
	for _, copies := range []int{1, 4} {
		n := float64(copies)
		trial := diskTrial(map[string]float64{"iops": n * 5e3, "throughput": n * 5e3 * 4096}, record.Sample{Name: cgroupRead, Labels: record.MakeLabels("end", "server"), Value: 5e3 * 4096})
		r := new(Reader)
		r.Take(trial)
		c := Cell{Finding: Finding{CellKey: record.CellKey{Cell: trial.Cell, Baseline: true}}, Load: 4, Copies: copies, Trials: map[int]*record.Trial{1: trial}}
		b := builder{reader: r}
		s := Stratum{Finding: Finding{Response: responses[0]}, Endpoints: []string{"server"}, Responses: responses}
		each, _ := b.each(&s, &c, []int{1}, "server")
		if x := each[0]; x[fRate] != 5e3 || x[fMissed] != 0 || math.Abs(timeOf(&x, c.load())-4/5e3) > 1e-9 || x[fValue] != n*5e3 {
			t.Errorf("%d copies: rate %g, missed %g, time %g, value %g", copies, x[fRate], x[fMissed], timeOf(&x, c.load()), x[fValue])
		}
	}
}

// TestHelperBesideWork: a helper is named beside work that takes more processor time than natively if only the helper can explain the cost. One
// that has room for the cost is a part of an operation's time among others.
func TestHelperBesideWork(t *testing.T) {
	// Requests of a virtual disk, 16 in flight. The job's processor time is 3 us, and 2 us natively.
	base := native(fRate, 180e3, fTime, math.NaN(), fWork, 0.36, fWorkBusy, 0.36)
	for _, c := range []struct {
		name       string
		rate, busy float64
		work       float64 // s a request
		want       Name
	}{
		{"a full thread", 100e3, 1.0, 3e-6, Helper},
		{"a full thread, and much work", 100e3, 1.0, 20e-6, Helper},
		{"a thread with room, and little work", 140e3, 0.72, 3e-6, Untold},
		{"a thread with room, and much work", 140e3, 0.72, 20e-6, Other},
	} {
		work := c.rate * c.work
		f := facts{own: with(fRate, c.rate, fTime, math.NaN(), fHelperBusy, c.busy, fHelperCPU, c.busy, fVCPU, work, fVCPUBusy, work/4, fGuestCPUs, 16.0, fGuest, work, fGuestTask, work, fGuestSoft, 0.0),
			base: base, load: 16, baseLoad: 16, costs: true, low: &point{load: 1, value: 2e4, helper: 0.1, busy: 0.1, added: math.NaN()}}
		v := decide(rules(), &f)
		if sure, because := v.atBest(&f); v.cause != c.want || c.want == Helper && sure < half {
			t.Errorf("%s: %s of %v, at best %g: %s", c.name, v.cause, v.among, sure, because)
		}
	}
}
