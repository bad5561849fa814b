package model_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"tare/analyse/cause"
	"tare/model"
	"tare/record"
)

// diskPlant puts a cause of disks into a machine or process, and leaves the rest as it was drawn.
type diskPlant struct {
	cause   cause.Name
	machine bool                              // the cell is in one; the baseline never is
	shape   func(r *rand.Rand, d *model.Disk) // both sides
	put     func(r *rand.Rand, d *model.Disk) // the cell alone
}

func diskPlants() []diskPlant {
	few := func(r *rand.Rand, d *model.Disk) { d.Jobs, d.Depth = 1+r.IntN(3), 1+r.IntN(2) }
	none := func(*rand.Rand, *model.Disk) {}
	between := func(r *rand.Rand, lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }
	return []diskPlant{
		{cause.Depth, false, few, none},
		{cause.Device, false, func(r *rand.Rand, d *model.Disk) {
			d.Jobs, d.Depth = 2+r.IntN(7), 16
			d.Device.Requests = between(r, 2e3, 5e4)
		}, none},
		{cause.Helper, true, func(r *rand.Rand, d *model.Disk) { d.Jobs, d.Depth, d.Threads = 4+r.IntN(12), 16, 1 },
			func(r *rand.Rand, d *model.Disk) { d.Serve = between(r, 20e-6, 80e-6) }},
		{cause.IOLimit, true, few, func(r *rand.Rand, d *model.Disk) { d.Limit = between(r, 300, 3000) }},
		{cause.Fsync, true, func(r *rand.Rand, d *model.Disk) { few(r, d); d.Write = true; d.Fsync = between(r, 0.3e-3, 3e-3) },
			func(r *rand.Rand, d *model.Disk) { d.Fsync *= between(r, 1.3, 3) }},
		{cause.PageCache, true, few, func(_ *rand.Rand, d *model.Disk) { d.Cached = 1e-6 }},
		{cause.Gofer, false, few, func(r *rand.Rand, d *model.Disk) {
			d.Trip = between(r, 20e-6, 300e-6)
			d.TripCPU = d.Trip * between(r, 0.2, 0.6)
		}},
	}
}

// TestDiskTruth plants one cause in each of many random loads on disks, and asks for it. TARE_TRUTH is how
// many of each, TARE_SEED the first one's seed.
func TestDiskTruth(t *testing.T) {
	n, start := 6, rand.Uint64()>>1
	if v, err := strconv.Atoi(os.Getenv("TARE_TRUTH")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("TARE_SEED"), 10, 64); err == nil {
		start = v
	}
	t.Logf("%d of each from TARE_SEED=%d on", n, start)
	for _, p := range diskPlants() {
		right, wrong := 0, 0
		for i := range n {
			f := diskFinding(t, p, start+uint64(i))
			switch f.Cause {
			case p.cause:
				right++
			case cause.Untold, cause.Other:
				t.Logf("seed %d, %s: %s %v: %s", start+uint64(i), p.cause, f.Cause, f.Among, f.Text)
			default:
				wrong++
				t.Logf("seed %d, %s: %s: %s", start+uint64(i), p.cause, f.Cause, f.Text)
			}
		}
		t.Logf("%s: %d of %d named, %d wrong", p.cause, right, n, wrong)
		if right < n*8/10 || wrong > n/20+1 {
			t.Errorf("%s: %d of %d named, %d wrong", p.cause, right, n, wrong)
		}
	}
}

// diskFinding runs a small study: three blocks of the cell and of its baseline, and both with fewer and
// with more in flight.
func diskFinding(t *testing.T, p diskPlant, seed uint64) cause.Finding {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	d := model.DefaultDisk()
	d.Machine, d.Threads, d.Size = false, 2, 4096<<r.IntN(3)
	for _, v := range []*float64{&d.Submit, &d.Guest, &d.Serve, &d.Wake, &d.Device.Read, &d.Device.Write} {
		*v *= math.Exp(0.5 * (r.Float64() - 0.5))
	}
	p.shape(r, &d)
	own := d
	own.Machine = p.machine
	p.put(r, &own)
	reader := new(cause.Reader)
	seq := 0
	var strata []cause.Stratum
	for _, depth := range []int{d.Depth, max(1, d.Depth/4), 4 * d.Depth} {
		if depth == d.Depth && len(strata) > 0 {
			continue
		}
		shared := record.Cell{{Factor: "workload", Value: "fio"}, {Factor: "iodepth", Value: strconv.Itoa(depth)}}
		all := []record.Response{{Name: "iops", Unit: record.PerSecond, Better: record.Higher, Operation: "request"},
			{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte"}, {Name: "latency_p50", Unit: record.Second, Better: record.Lower},
			{Name: "fsync_share", Unit: record.Fraction, Step: record.SyncStep}}
		s := cause.Stratum{Finding: cause.Finding{CellKey: record.CellKey{Workload: "fio", Stratum: shared.Key(), Shared: shared}, Response: all[0]},
			Endpoints: []string{"main"}, Responses: all}
		var rates [2]float64
		for side, x := range []model.Disk{d, own} {
			x.Depth = depth
			cell := append(record.Cell{{Factor: "sandbox", Value: []string{"base", "own"}[side]}}, shared...)
			c := cause.Cell{Finding: cause.Finding{CellKey: record.CellKey{Treatment: cell[0].Value, Cell: cell, Baseline: side == 0}}, Load: float64(d.Jobs * depth), Trials: map[int]*record.Trial{}}
			for block := 1; block <= 3; block++ {
				seq++
				x.Seed = seed<<8 + uint64(seq)
				res, err := model.RunDisk(x)
				if err != nil {
					t.Fatal(err)
				}
				trial := &record.Trial{Seq: seq, Block: block, Attempt: 1, Cell: cell, Status: record.OK, Samples: res.Reading.Samples}
				v, _ := trial.Sample("iops")
				rates[side] += v
				reader.Read(trial)
				c.Trials[block] = trial
			}
			s.Cells = append(s.Cells, c)
		}
		ratio := rates[1] / rates[0]
		s.Cells[1].Ratio, s.Cells[1].Costs = &ratio, ratio < 0.97
		strata = append(strata, s)
	}
	for _, f := range cause.Build(0.95, reader, strata) {
		if !f.Baseline && f.Stratum == strata[0].Stratum {
			return f
		}
	}
	t.Fatalf("seed %d: nothing was found of the cell", seed)
	return cause.Finding{}
}
