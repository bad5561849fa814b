// Package causes tests how well causes are named. It plants causes by arithmetic of its
// own, mild ones and ones that have no name, and counts what package analyse/cause says
// about them.
//
// The data path: 1. draw makes a world (load, demands, servers) with one cause, planted
// so that it leaves a given part of the rate, and how much its trials scatter; 2. solve says how fast that is, by mean
// value analysis of a closed queueing network; 3. trial writes the samples that a
// workload and the collectors would have of it, with noise that a block shares, noise of
// the trial and noise of each reading; 4. cause.Build judges a small study of it; 5. the
// Report counts. Nothing here is shared with the rules, nor with package model.
//
// Sources: Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing
// networks", JACM 1980; Seidmann, Schweitzer and Shalev-Oren, 1987.
package causes

import (
	"cmp"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/analyse/cause"
	"tare/record"
)

// Noise is how the trials of a baseline and of a cell scatter: standard deviations of
// logarithms, and the part of the variances that a block's trials share.
type Noise struct{ Base, Own, Together float64 }

// Band is a range of scatter to draw from.
type Band struct {
	Name string
	Draw func(*rand.Rand) Noise
}

// Report counts the verdicts on planted causes.
type Report struct {
	Band    string
	Known   Group // causes with a name, 75 to 95 % of the rate left
	Full    Group // of these, in studies with all that tells causes apart
	Crowded Group // causes beside a host that neighbours fill, in the baseline as well
	Foreign Group // causes without a name, 60 to 90 % left: other is right
	Bins    []Bin
	Rows    []Row
	Cases   []Case
}

// Group counts the verdicts on the planted causes of one kind. The rest is untold, unknown or
// other, and names no resource.
type Group struct{ N, Right, Wrong int }

func (g *Group) count(c *Case) {
	g.N++
	switch {
	case c.right():
		g.Right++
	case c.Wrong():
		g.Wrong++
	}
}

// Bin is a part of the reliability curve: of the findings with a confidence from From to
// below To, how many were right, and what their mean confidence promised.
type Bin struct {
	From, To float64
	Told     int
	Right    int
	Promised float64 // sum of confidences
	// Of these, the findings that name a resource, so not other or none.
	Named, NamedRight int
}

// Row counts the verdicts on one planted cause.
type Row struct {
	Planted string
	Foreign bool
	Found   map[cause.Name]int
}

// Case is one planted cause and the verdict on it.
type Case struct {
	Seed    uint64
	Planted string
	Cause   string // that should be named
	Foreign bool
	Crowded bool // neighbours fill the host, in the baseline as well
	Left    float64
	Noise   Noise
	// Full: the study had the cell with fewer operations under way, the operation in the
	// middle, prices of calls, and three blocks or more.
	Full    bool
	Finding cause.Finding
}

// right reports whether a finding is what was planted. For a foreign cause, other is right.
func (c *Case) right() bool {
	if c.Foreign {
		return c.Finding.Cause == cause.Other
	}
	return string(c.Finding.Cause) == c.Cause
}

// Wrong reports whether a finding names a resource that is not what was planted.
func (c *Case) Wrong() bool {
	k := c.Finding.Cause
	return !c.right() && told(k) && k != cause.Other
}

// told reports whether a finding names anything.
func told(k cause.Name) bool { return k != cause.Untold && k != cause.Unknown }

// Run plants n causes with a name and n without, by seed, and writes nominal beside
// achieved. An error is one of writing.
func Run(w io.Writer, seed uint64, n int, band Band) (Report, error) {
	rep := Report{Band: band.Name, Cases: Cases(seed, n, band)}
	rep.count()
	return rep, rep.write(w, seed)
}

// Cases plants n causes with a name, n without, and n/2 beside a host that neighbours fill,
// and has them judged.
func Cases(seed uint64, n int, band Band) []Case {
	out := make([]Case, 2*n+n/2)
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				switch {
				case i < n:
					out[i] = judged(draw(seed<<20+uint64(i), named(), 0.75, 0.95, band)) //nolint:gosec // i is not negative
				case i < 2*n:
					out[i] = judged(draw(seed<<20+uint64(i), foreigners(), 0.6, 0.9, band)) //nolint:gosec // i is not negative
				default:
					out[i] = judged(draw(seed<<20+uint64(i), crowds(), 0.75, 0.95, band)) //nolint:gosec // i is not negative
				}
			}
		})
	}
	for i := range out {
		next <- i
	}
	close(next)
	wg.Wait()
	return out
}

// judged runs a small study of a world: the cell and its baseline, and both with fewer
// operations under way.
func judged(d drawn) Case {
	r := rand.New(rand.NewPCG(d.seed, 0x7374756479)) //nolint:gosec // seeded: a trial must be repeatable
	reader := new(cause.Reader)
	loads := []int{d.world.n}
	if d.family {
		for _, n := range []int{1, d.world.n / 2} {
			if n > 0 && !slices.Contains(loads, n) {
				loads = append(loads, n)
			}
		}
		if d.world.disk && r.IntN(2) == 0 {
			loads = append(loads, 4*d.world.n)
		}
	}
	seq := 0
	priced := d.plant.cause == "interception" || d.plant.name == "interception" || r.IntN(5) > 0
	var strata []cause.Stratum
	for _, n := range loads {
		strata = append(strata, stratum(r, &d, n, &seq, reader, priced))
	}
	out := Case{Seed: d.seed, Planted: d.plant.name, Cause: cmp.Or(d.plant.cause, d.plant.name), Foreign: d.plant.foreign, Crowded: d.world.crowded, Left: d.left, Noise: d.noise, Full: d.family && d.median && d.blocks > 2 && (priced || d.world.place != sentry)}
	for _, f := range cause.Build(0.95, reader, strata) {
		if !f.Baseline && f.Stratum == strata[0].Stratum {
			out.Finding = f
		}
	}
	return out
}

func stratum(r *rand.Rand, d *drawn, n int, seq *int, reader *cause.Reader, priced bool) cause.Stratum {
	factor, workload := "connections", "net"
	if d.world.disk {
		factor, workload = "iodepth", "fio"
	}
	shared := record.Cell{{Factor: "workload", Value: workload}, {Factor: factor, Value: strconv.Itoa(n)}}
	s := cause.Stratum{Finding: cause.Finding{CellKey: record.CellKey{Workload: workload, Stratum: shared.Key(), Shared: shared}}, Endpoints: []string{"server"}}
	s.Responses = responses(&d.world)
	s.Response = s.Responses[0]
	base := d.world.native()
	days := make([]float64, d.blocks)
	for b := range days {
		days[b] = math.Sqrt(d.noise.Together) * r.NormFloat64()
	}
	scatter, alone := []float64{d.noise.Base, d.noise.Own}, math.Sqrt(1-d.noise.Together)
	for k, w := range []world{base, d.world} {
		cell := append(record.Cell{{Factor: "sandbox", Value: []string{"process", d.world.place}[k]}}, shared...)
		c := cause.Cell{Finding: cause.Finding{CellKey: record.CellKey{Treatment: w.place, Cell: cell, Baseline: k == 0}}, Load: float64(n), Trials: map[int]*record.Trial{}}
		for b := range d.blocks {
			*seq++
			t := w.trial(r, n, math.Exp(scatter[k]*days[b]), scatter[k]*alone, cell, b+1, *seq)
			if !d.median {
				t.Samples = slices.DeleteFunc(t.Samples, func(s record.Sample) bool { return s.Name == "latency_p50" })
			}
			reader.Read(t)
			c.Trials[b+1] = t
		}
		s.Cells = append(s.Cells, c)
	}
	own := &s.Cells[1]
	if priced && d.world.calls > 0 && d.world.place == sentry {
		x := d.world.solve(n)
		rate, each := x.rate, d.world.calls
		if d.world.stream {
			rate, each = rate*d.world.bytes/1e6, each/d.world.bytes*1e6
		}
		own.Calls = &cause.Calls{Each: each, Rate: rate, Cost: d.world.price * math.Exp(0.05*r.NormFloat64()), Parallelism: 1}
	}
	ratio, lo, hi := compared(&s, d.blocks)
	own.Ratio = &ratio
	own.Costs = hi < 1
	own.Undecided = !own.Costs && lo < 0.97
	return s
}

func responses(w *world) []record.Response {
	mean := record.Response{Name: "latency_mean", Unit: record.Second, Better: record.Lower, Operation: "request"}
	middle := record.Response{Name: "latency_p50", Unit: record.Second, Better: record.Lower, Operation: "request"}
	switch {
	case w.disk:
		all := []record.Response{{Name: "iops", Unit: record.PerSecond, Better: record.Higher, Operation: "request"}, mean, middle,
			{Name: "bandwidth", Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte"}}
		if w.syncs > 0 {
			all = append(all, record.Response{Name: "fsync_share", Unit: record.Fraction, Step: record.SyncStep})
		}
		return all
	case w.stream:
		return []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte"}}
	}
	return []record.Response{{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Operation: "request"}, mean, middle}
}

// compared is the ratio of the first response with its 95 % interval, by a paired t.
func compared(s *cause.Stratum, blocks int) (ratio, lo, hi float64) {
	var l []float64
	mean, n := 0.0, float64(blocks)
	for b := range blocks {
		x, _ := s.Cells[1].Trials[b+1].Sample(s.Response.Name)
		y, _ := s.Cells[0].Trials[b+1].Sample(s.Response.Name)
		l = append(l, math.Log(x/y))
		mean += l[b] / n
	}
	v := 0.0
	for _, x := range l {
		v += (x - mean) * (x - mean) / (n - 1)
	}
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * math.Sqrt(v/n)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)
}
