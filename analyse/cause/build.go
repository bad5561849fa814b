package cause

import (
	"maps"
	"math"
	"slices"
	"strings"

	"tare/record"
)

// Stratum is what Build needs to know of one.
type Stratum struct {
	Finding                     // Workload, Stratum, Shared and Response are the same for all its cells
	Endpoints []string          // roles of the workload whose sandbox is in question
	Responses []record.Response // that its trials may have
	Past      bool              // another tool measured it: nothing can be read again
	Cluster   bool              // it was measured in pods
	Tiers     *Tiers            // what its load passes through; nil: nothing outside of the study
	Cells     []Cell
}

// Cell is one treatment of a stratum.
type Cell struct {
	Finding                       // Treatment, Cell, Baseline, Ratio, Costs and Price
	Trials  map[int]*record.Trial // the good ones that count, by block
	// Emulated says that software emulates the processors of its guest, as QEMU's TCG does.
	Emulated bool
	Pinned   float64 // processors that it may use; 0: any
	Load     float64 // operations under way, as the workload was told, in each copy; 0: not known
	Copies   int     // of the load at once, each with ends of its own; 0: one
	Calls    *Calls  // nil: not measured
}

// Build makes a finding for every cell that has a good trial, in the order of strata
// and their cells. Confidence is that of the intervals of fits.
func Build(confidence float64, r *Reader, strata []Stratum) []Finding {
	b := builder{confidence: confidence, reader: r, rules: rules(), strata: strata, read: make([][]cellRead, len(strata)), lines: map[fitKey]*Fit{}}
	for i := range strata {
		b.read[i] = b.readAll(&strata[i])
	}
	fam := families(strata)
	var out []Finding
	for i := range strata {
		for j := range strata[i].Cells {
			if b.read[i][j].trials > 0 {
				out = append(out, b.find(i, j, fam))
			}
		}
	}
	return out
}

type builder struct {
	confidence float64
	reader     *Reader
	rules      []rule
	strata     []Stratum
	read       [][]cellRead // beside strata and their cells
	lines      map[fitKey]*Fit
}

// cellRead is what was read of one cell: of each endpoint, its trials and their middle.
type cellRead struct {
	trials    int
	blocks    []int
	times     []float64 // of an operation, beside blocks
	values    []float64 // of the response, beside blocks
	endpoints []endpointRead
}

// endpointRead has no sheets of single trials: they are made again where they are wanted, one
// cell at a time, since all of them are large.
type endpointRead struct {
	name   string
	helper string
	mid    sheet
}

func (b *builder) readAll(s *Stratum) []cellRead {
	out := make([]cellRead, len(s.Cells))
	for j := range s.Cells {
		c := &s.Cells[j]
		cr := cellRead{trials: len(c.Trials), blocks: slices.Sorted(maps.Keys(c.Trials))}
		for e, endpoint := range s.Endpoints {
			each, helper := b.each(s, c, cr.blocks, endpoint)
			cr.endpoints = append(cr.endpoints, endpointRead{name: endpoint, helper: helper, mid: middle(each)})
			for i := range each {
				if e == 0 {
					cr.times = append(cr.times, timeOf(&each[i], c.load()))
					cr.values = append(cr.values, each[i][fValue])
				}
			}
		}
		out[j] = cr
	}
	return out
}

// load is what the workload was told; NaN where that is not known.
func (c *Cell) load() float64 {
	if c.Load > 0 {
		return c.Load
	}
	return math.NaN()
}

// mixed reports whether a trial does several things one after another, each with a rate of its own. Then the
// trial's processor time cannot be divided by one of them.
func (s *Stratum) mixed() bool {
	if s.Response.Unit != record.PerSecond || s.Response.Operation != "" {
		return false
	}
	rates := 0
	for i := range s.Responses {
		if s.Responses[i].Unit == record.PerSecond {
			rates++
		}
	}
	return rates > 1
}

// each makes the sheets of a cell's trials at one endpoint, in the order of blocks, and
// says which role's thread is the busiest helper in most of them.
func (b *builder) each(s *Stratum, c *Cell, blocks []int, endpoint string) ([]sheet, string) {
	ops := operationOf(s.Responses)
	out := make([]sheet, len(blocks))
	seen := map[string]int{}
	for i, block := range blocks {
		var helper string
		out[i], helper = b.reader.sheet(c.Trials[block], endpoint, s.Endpoints)
		responses(&out[i], c.Trials[block], &ops, s.Response.Name, float64(max(1, c.Copies)))
		seen[helper]++
	}
	most := ""
	for _, h := range slices.Sorted(maps.Keys(seen)) {
		if h != "" && (most == "" || seen[h] > seen[most]) {
			most = h
		}
	}
	return out, most
}

// operation is which responses say what of it; "" for none.
type operation struct {
	rate string // operations a second
	time string // how long one takes
	mid  string // the one in the middle
	disk string // bytes a second, where they are a disk's
	sync string // the part of the time in fsync

	runtime, program []string // its steps, of a launch
}

// operationOf picks them. Operations that are counted as I/O of disks, by their
// response's name, have bytes of disks too.
func operationOf(all []record.Response) operation {
	var o operation
	bytes := ""
	for _, r := range all {
		switch {
		case r.Step == record.RuntimeStep:
			o.runtime = append(o.runtime, r.Name)
		case r.Step == record.ProgramStep:
			o.program = append(o.program, r.Name)
		case r.Step == record.SyncStep:
			o.sync = r.Name
		case r.Operation == "byte" && r.Unit == record.BytesPerSecond && bytes == "":
			bytes = r.Name
		case r.Operation == "" || r.Operation == "byte" || r.Operation == "run":
		case o.rate == "" && r.Unit == record.PerSecond:
			o.rate = r.Name
		case o.time == "" && r.Unit == record.Second:
			o.time = r.Name
			if of, ok := strings.CutSuffix(r.Name, "_mean"); ok {
				o.mid = of + "_p50"
			}
		}
	}
	if o.rate != "" && o.mid == "" { // next to a rate, latencies describe the same operation
		if i := slices.IndexFunc(all, func(r record.Response) bool { return r.Unit == record.Second && strings.HasSuffix(r.Name, "_p50") }); i >= 0 {
			o.mid = all[i].Name
		}
	}
	if o.rate == "iops" {
		o.disk = bytes
	}
	return o
}

// responses puts what the trial's workload says into its sheet. What it says of disks
// is taken where the kernel does not charge cgroups for them, and where the disk had so many
// bytes, half of them at least: else they came from memory. An end belongs to one of the copies, and
// rates are of all of them.
func responses(x *sheet, t *record.Trial, ops *operation, first string, copies float64) {
	for _, r := range []struct {
		to   figure
		name string
		of   float64
	}{{fRate, ops.rate, copies}, {fTime, ops.time, 1}, {fMedian, ops.mid, 1}, {fSync, ops.sync, 1}, {fValue, first, 1}} {
		if v, ok := t.Sample(r.name); ok && r.name != "" && v > 0 && !math.IsInf(v, 0) {
			x[r.to] = v / r.of
		}
	}
	for _, s := range []struct {
		to    figure
		names []string
	}{{fRuntime, ops.runtime}, {fProgram, ops.program}} {
		for _, name := range s.names {
			if v, ok := t.Sample(name); ok && v >= 0 && !math.IsInf(v, 0) {
				x.add(s.to, v)
			}
		}
	}
	v, ok := t.Sample(ops.disk)
	if !ok || ops.disk == "" || !(v > 0) || math.IsInf(v, 0) {
		return
	}
	v /= copies
	device := x[fDeviceBytes] / copies
	missed(x, t, v, x.or(fDisk, device))
	if !x.has(fDisk) {
		x[fDisk] = v
		if device < 0.5*v { // false of NaN
			x[fDisk] = 0
		}
	}
}

// missed compares the bytes that a disk benchmark tells with those that a disk had in the measured window; asked and reached are
// rates. The window is longer than the load, by a program's start and end, and in a short trial by as much again. So amounts are
// compared where the workload tells how long its load ran.
func missed(x *sheet, t *record.Trial, asked, reached float64) {
	for _, p := range t.Phases {
		if p.Name == record.PhaseRun {
			x[fWindow] = p.Duration.Seconds()
		}
	}
	ran, told := t.Sample(record.LoadTime)
	if !told || !(ran > 0) || !(x[fWindow] >= ran) {
		ran, told = x[fWindow], false
	}
	x[fVolume] = asked * ran
	if told {
		x[fLoaded] = ran
		reached *= x[fWindow] / ran
	}
	if !math.IsNaN(reached) {
		x[fMissed] = max(0, 1-reached/asked)
	}
}

// sheet is that of a trial's end, with the busiest thread of the endpoints that are not
// sandboxed.
func (r *Reader) sheet(t *record.Trial, endpoint string, endpoints []string) (sheet, string) {
	out, helper := blank(), ""
	other := math.NaN()
	for _, e := range r.trials[t.Identity()] {
		name := r.list[e.endpoint]
		switch {
		case name == endpoint:
			out, helper = e.unpack(), r.list[e.helper]
		case !slices.Contains(endpoints, name) && !(float64(e.figures[fWorkBusy]) <= other):
			other = float64(e.figures[fWorkBusy])
		}
	}
	out[fOther] = other
	return out, helper
}

// find decides one cell.
func (b *builder) find(i, j int, fam []family) Finding {
	s := &b.strata[i]
	if s.Tiers != nil {
		return b.throughTiers(i, j)
	}
	out := s.Cells[j].Finding
	out.Workload, out.Stratum, out.Shared, out.Response = s.Workload, s.Stratum, s.Shared, s.Response
	cr := &b.read[i][j]
	out.Trials = cr.trials
	var f facts
	var v verdict
	for e := range cr.endpoints { // the end that is worst off decides
		g := b.facts(i, j, e, fam[i])
		w := decide(b.rules, &g)
		if e == 0 || stronger(w, v) {
			f, v = g, w
			out.Endpoint = cr.endpoints[e].name
		}
	}
	if v.cause == Unknown && f.own.unread() && b.collected(&s.Cells[j]) {
		v.missing = elsewhere
	}
	if len(cr.endpoints) == 0 {
		out.Cause, out.Missing = Unknown, "nothing says where the workload's ends ran"
		out.Text = sentence(&out, nil, nil)
		return out
	}
	each, _ := b.each(s, &s.Cells[j], cr.blocks, out.Endpoint)
	if w := v.doubt(b.rules, &f); w.cause != v.cause {
		v = w
		out.Confidence, _ = v.atBest(&f)
	} else {
		out.Confidence = b.confident(&f, &v, each)
	}
	out.Cause, out.Among, out.Missing = v.cause, v.among, v.missing
	if out.Cause == Helper {
		out.Role = f.helper
	}
	out.Readings = b.readings(&f, &v, each)
	if out.Suspect() { // the slowness itself is not sure
		out.Confidence *= unsure
	}
	b.fits(&out, i, j, fam[i])
	out.Text = sentence(&out, &f, &v)
	return out
}

// stronger says whether a verdict tells more than another.
func stronger(a, b verdict) bool {
	rank := func(v verdict) int {
		switch v.cause {
		case Unknown:
			return 1
		case None:
			return 0
		case Untold:
			return 2
		}
		return 3
	}
	if rank(a) != rank(b) {
		return rank(a) > rank(b)
	}
	return a.margin > b.margin
}

// facts puts together what one endpoint of a cell is decided by.
func (b *builder) facts(i, j, e int, fam family) facts {
	s := &b.strata[i]
	c := &s.Cells[j]
	er := &b.read[i][j].endpoints[e]
	found := c.Finding
	found.Response = s.Response
	costs := c.Costs || found.Suspect()
	f := facts{own: er.mid, base: blank(), baseline: c.Baseline, costs: costs, undecided: c.Undecided, mixed: s.mixed(), worse: found.looksWorse(1.03), helper: er.helper, load: c.load(), baseLoad: math.NaN(), pinned: c.Pinned, emulated: c.Emulated, calls: c.Calls, price: c.Price, past: s.Past, cluster: s.Cluster}
	if k := slices.IndexFunc(s.Cells, func(c Cell) bool { return c.Baseline }); k >= 0 && k != j && b.read[i][k].trials > 0 {
		f.base, f.baseLoad = b.read[i][k].endpoints[e].mid, s.Cells[k].load()
		f.from = b.difference(i, j, k)
	}
	if base, ok := f.baseStays(); ok {
		f.natively = &base
	}
	f.beside(b.points(i, j, e, fam, false))
	if f.polling = f.polls(); f.polling {
		f.beside(b.points(i, j, e, fam, true))
	}
	return f
}

// points are the other cells of the family: of the same treatment, but for the load.
func (b *builder) points(i, j, e int, fam family, polling bool) []point {
	var out []point
	add := func(k, at int) {
		if b.read[k][at].trials == 0 || e >= len(b.read[k][at].endpoints) {
			return
		}
		c := &b.strata[k].Cells[at]
		g := facts{own: b.read[k][at].endpoints[e].mid, base: blank(), load: c.load(), baseLoad: math.NaN(), pinned: c.Pinned, calls: c.Calls, polling: polling}
		if z := slices.IndexFunc(b.strata[k].Cells, func(c Cell) bool { return c.Baseline }); z >= 0 && b.read[k][z].trials > 0 {
			g.base, g.baseLoad = b.read[k][z].endpoints[e].mid, b.strata[k].Cells[z].load()
		}
		out = append(out, point{load: g.inFlight(), added: g.added(), value: g.own.unit(), helper: g.own[fHelperCPU], busy: g.own[fHelperBusy]})
	}
	own := &b.strata[i].Cells[j]
	for k := range b.strata[i].Cells { // a study that compares loads has them in one stratum
		if k != j && onlyLoad(own.Cell, b.strata[i].Cells[k].Cell) {
			add(i, k)
		}
	}
	for _, k := range fam.loads {
		if k == i {
			continue
		}
		if at := slices.IndexFunc(b.strata[k].Cells, func(c Cell) bool { return c.Treatment == own.Treatment }); at >= 0 {
			add(k, at)
		}
	}
	return out
}

// beside takes from the cells of the family those with the lowest and with the next higher load.
func (f *facts) beside(family []point) {
	f.low, f.high = nil, nil
	for i := range family {
		p := &family[i]
		if f.low == nil || p.load < f.low.load {
			f.low = p
		}
		if p.load >= spread*f.inFlight() && (f.high == nil || p.load < f.high.load) {
			f.high = p
		}
	}
}
