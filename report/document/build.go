package document

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/section"
	"tare/report/words"
	"tare/study"
)

// Builder puts a Document together. It keeps a few numbers of each trial, so
// that results which do not fit in memory can be streamed through it.
type Builder struct {
	study  *study.Study
	cells  []Cell
	index  map[string]int // Cell.Key to cells
	trials []trial
	codes  map[string]string // each warning's code once
	curves map[curveKey][]count

	decoder decoder
	settled bool
	order   []int     // of the trials whose series may have room
	ahead   []reading // of the first of them
}

// trial is what is kept of one.
type trial struct {
	cell, seq, block, attempt int
	session                   int64
	ok                        bool
	start                     time.Time
	duration                  time.Duration
	from, to                  time.Duration // the measured window; zero: none
	values                    []float64     // NaN: none
	warnings                  []string
}

// Input is what a Document shows beside the trials.
type Input struct {
	Tare     string // version of the program
	Dir      string // name of the results folder
	File     string // name of the study file
	Live     bool
	Result   *analyse.Result
	Sessions []Session
	Series   ReadSeries // nil: no series are wanted
}

// ReadSeries gives use what was sampled in a trial, of which only Seq and Attempt are
// set. It is called from several goroutines at once. A series that cannot be read
// is left out and counted in Omitted: a damaged file must not hide the report.
type ReadSeries func(t *record.Trial, use func([]record.Series)) error

// New begins the document of a study.
func New(st *study.Study) *Builder {
	b := &Builder{study: st, index: make(map[string]int), codes: make(map[string]string), curves: make(map[curveKey][]count)}
	for i := range st.Strata {
		s := &st.Strata[i]
		responses := st.WorkloadOf(i).Responses
		for j, c := range s.Cells {
			b.addCell(Cell{Key: c.Key(), Levels: c, Stratum: s.Key, Treatment: st.Treatment(i, c).Key(), Baseline: j == s.Baseline, Responses: responses})
		}
	}
	return b
}

func (b *Builder) addCell(c Cell) int {
	b.index[c.Key] = len(b.cells)
	b.cells = append(b.cells, c)
	return len(b.cells) - 1
}

// Add takes in one trial. It keeps nothing of t.
func (b *Builder) Add(t *record.Trial) {
	key := t.Cell.Key()
	i, ok := b.index[key]
	if !ok { // a stray: of no cell of this study, see analyse
		i = b.addCell(Cell{Key: key, Levels: slices.Clone(t.Cell), Responses: []string{}})
	}
	x := trial{cell: i, seq: t.Seq, block: t.Block, attempt: t.Attempt, session: t.Session, ok: t.Status == record.OK,
		start: t.Start, duration: t.Duration}
	for _, p := range t.Phases {
		if p.Name == phaseRun {
			x.from, x.to = p.Offset, p.Offset+p.Duration
		}
	}
	if names := b.cells[i].Responses; len(names) > 0 {
		x.values = make([]float64, len(names))
		for j, name := range names {
			v, ok := t.Sample(name)
			if !ok {
				v = math.NaN()
			}
			x.values[j] = v
		}
	}
	for _, w := range t.Warnings {
		code, ok := b.codes[w.Code]
		if !ok {
			code = w.Code
			b.codes[code] = code
		}
		x.warnings = append(x.warnings, code)
	}
	b.trials = append(b.trials, x)
	if x.ok {
		for k := range t.Histograms {
			b.addHistogram(i, &t.Histograms[k])
		}
	}
}

// Settle does what needs no analysis, once all trials are added: it puts them in
// order and reads the series that will probably have room (none if read is nil).
// Document does it if nobody has; to call it beside the analysis saves a fifth of
// the time of a large report.
func (b *Builder) Settle(read ReadSeries) {
	if b.settled {
		return
	}
	b.settled = true
	slices.SortFunc(b.trials, func(x, y trial) int {
		return cmp.Or(cmp.Compare(x.seq, y.seq), cmp.Compare(x.attempt, y.attempt), cmp.Compare(x.block, y.block),
			cmp.Compare(b.cells[x.cell].Key, b.cells[y.cell].Key), x.start.Compare(y.start))
	})
	b.sortStrays()
	if read != nil {
		b.order = b.candidates()
		b.ahead = b.readSeries(b.order[:min(maxTrials, len(b.order))], read)
	}
}

// Document returns what was added, with its analysis. It may be called once.
func (b *Builder) Document(in Input) *Document {
	b.Settle(in.Series)
	d := &Document{Version: Version, Tare: in.Tare, Live: in.Live, Dir: in.Dir, Study: b.asked(), Result: shorter(in.Result),
		Sessions: in.Sessions, Cells: b.cells, Trials: b.columns(), Curves: b.distributions(), Notes: notes(in.Result), Answer: append([]Sentence{}, words.Answer(in.Result, words.Options{})...)}
	d.Machines = words.Accelerators(in.Result)
	d.Causes, d.Advice = b.causes(in.Result), b.advice(in.Result)
	if in.Result != nil {
		hosts, started := make([]record.Host, len(in.Sessions)), make([]string, len(in.Sessions))
		for i := range in.Sessions {
			hosts[i], started[i] = in.Sessions[i].Host, in.Sessions[i].Started
		}
		whole := []*section.Section{section.Asked(in.Result, b.study, in.File), section.Hosts(hosts, started)}
		d.Sections, d.Plain = append(whole, section.Page(in.Result, hosts)...), append(section.Plain(in.Result), whole...)
		d.State = words.State(in.Result) + "."
		if len(in.Result.LoadSteps) > 0 {
			d.Plateaus = words.LoadFigures()
		}
		if s := in.Result.Sentinel; s != nil {
			d.Busy = s.Busy()
		}
		if in.Result.Modelled {
			d.Modelled = words.ModelledAbout
		}
	}
	d.windows = make([][]float64, len(b.trials))
	for i := range b.trials {
		d.windows[i] = b.trials[i].window()
	}
	if d.Sessions == nil {
		d.Sessions = []Session{}
	}
	d.Generated = b.generated(in.Sessions)
	if in.Series != nil {
		b.addSeries(d, in.Series)
	}
	return d
}

// sortStrays orders the cells that the study does not have by their keys: they
// were met in the order of Add.
func (b *Builder) sortStrays() {
	n := 0
	for i := range b.study.Strata {
		n += len(b.study.Strata[i].Cells)
	}
	if n = min(n, len(b.cells)); n == len(b.cells) {
		return
	}
	old := make(map[int]string)
	for i := n; i < len(b.cells); i++ {
		old[i] = b.cells[i].Key
	}
	slices.SortFunc(b.cells[n:], func(x, y Cell) int { return cmp.Compare(x.Key, y.Key) })
	to := make(map[string]int)
	for i := n; i < len(b.cells); i++ {
		to[b.cells[i].Key] = i
	}
	for i := range b.trials {
		if key, ok := old[b.trials[i].cell]; ok {
			b.trials[i].cell = to[key]
		}
	}
	moved := make(map[curveKey][]count, len(b.curves))
	for k, c := range b.curves {
		if key, ok := old[k.cell]; ok {
			k.cell = to[key]
		}
		moved[k] = c
	}
	b.curves = moved
}

// generated is the end of the last trial.
func (b *Builder) generated(sessions []Session) string {
	var last time.Time
	for i := range b.trials {
		if end := b.trials[i].start.Add(b.trials[i].duration); end.After(last) {
			last = end
		}
	}
	if last.IsZero() {
		if n := len(sessions); n > 0 {
			return sessions[n-1].Started
		}
		return ""
	}
	return last.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

func (b *Builder) asked() Study {
	st := b.study
	out := Study{Name: st.Name, About: st.About, Factors: []Factor{}}
	for _, f := range st.Factors {
		out.Factors = append(out.Factors, Factor(f))
	}
	return out
}

// columns turns the trials, which are in order, into columns. Times are rounded to
// 0.1 ms and values to six digits: no more can be seen, it is a third of the
// file's size, and results.db has them whole.
func (b *Builder) columns() Trials {
	n := len(b.trials)
	t := Trials{Cell: make([]int, n), Seq: make([]int, n), Block: make([]int, n), Attempt: make([]int, n), Session: make([]int64, n),
		OK: make([]int, n), Start: make([]float64, n), Duration: make([]float64, n), Values: make([][]*float64, n), Warnings: make([][]string, n)}
	var first time.Time
	for i := range b.trials {
		if s := b.trials[i].start; i == 0 || s.Before(first) {
			first = s
		}
	}
	for i := range b.trials {
		x := &b.trials[i]
		t.Cell[i], t.Seq[i], t.Block[i], t.Attempt[i], t.Session[i] = x.cell, x.seq, x.block, x.attempt, x.session
		if x.ok {
			t.OK[i] = 1
		}
		t.Start[i], t.Duration[i] = tenths(x.start.Sub(first)), tenths(x.duration)
		values := make([]float64, len(x.values))
		t.Values[i] = make([]*float64, len(x.values))
		for j, v := range x.values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				values[j] = round(v, 6)
				t.Values[i][j] = &values[j]
			}
		}
		t.Warnings[i] = x.warnings
	}
	return t
}

// shorter is the analysis with its figures rounded to six digits, in a copy. All
// seventeen of three thousand cells would take a megabyte of the file.
func shorter(r *analyse.Result) *analyse.Result {
	if r == nil {
		return nil
	}
	out := *r
	out.Compared = slices.Clone(r.Compared)
	for i := range out.Compared {
		c := &out.Compared[i]
		for _, v := range []*float64{&c.Level.Typical, &c.Level.Median, &c.Level.Min, &c.Level.Max, &c.Base.Typical, &c.Base.Median, &c.Base.Min, &c.Base.Max} {
			*v = round(*v, 6)
		}
		shortest(&c.Estimate)
	}
	out.Causes, out.Advice = nil, nil // Document has them, shorter; and its sections have these
	out.Quotas, out.Warnings, out.Failures, out.Skips, out.Overheads, out.Placements = nil, nil, nil, nil, nil, nil
	out.CPUCosts = shorterCosts(r.CPUCosts)
	if r.Published != nil {
		p := *r.Published
		p.Rows = slices.Clone(p.Rows)
		for i := range p.Rows {
			row := &p.Rows[i]
			row.Ratio = round(row.Ratio, 6)
			row.Measured = slices.Clone(row.Measured)
			for j := range row.Measured {
				shortest(&row.Measured[j].Estimate)
			}
		}
		out.Published = &p
	}
	return &out
}

func shortest(e *stat.Estimate) {
	for _, v := range []*float64{&e.Ratio, &e.Lo, &e.Hi, &e.Base, &e.Value, &e.SE, &e.DF} {
		*v = round(*v, 6)
	}
}

// tenths is a duration in seconds, to 0.1 ms.
func tenths(d time.Duration) float64 { return float64(d.Round(100*time.Microsecond)/1000) / 1e6 }
