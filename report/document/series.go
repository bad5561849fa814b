package document

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/flate"

	"tare/record"
	"tare/report/words"
)

// Bounds of what is shown of a trial.
const (
	maxPoints = 200 // of a line: a screen has not many more columns for it
	maxLines  = 64
	maxTrials = 400 // with series in the file: each is a file to be read, and half a millisecond
)

// Sizes that decide how many trials' series have room. The file is wanted below
// 5 MB with everything in it; what the rest takes is estimated, since it is not
// encoded yet when series are chosen.
const (
	wantedData   = 2_600_000 // compressed; a third more as base64, beside about 1.2 MB of scripts
	leastSeries  = 250_000
	perTrial     = 8 // compressed, with no value
	perValue     = 4
	perCurve     = 140
	perCompared  = 70
	seriesFactor = 0.8 // of a trial compressed by itself: what they share is compressed once
)

// addSeries chooses the trials whose series are shown: the last good one of each
// cell first, round robin over the strata, so that every stratum has some before
// any has all.
func (b *Builder) addSeries(d *Document, read ReadSeries) {
	values := 0
	for i := range b.trials {
		values += len(b.trials[i].values)
	}
	room := wantedData - perTrial*len(b.trials) - perValue*values - perCurve*len(d.Curves)
	if d.Result != nil {
		room -= perCompared * len(d.Result.Compared)
	}
	room = max(room, leastSeries)
	order, next := b.order, b.ahead
	var size sizer
	var lost, shown int
	for at, i := range order {
		if len(next) == 0 { // those read ahead had nothing to show
			next = b.readSeries(order[at:min(at+2*runtime.GOMAXPROCS(0), len(order))], read)
		}
		s, err := next[0].series, next[0].err
		next = next[1:]
		if err != nil {
			lost++
			continue
		}
		if len(s.Lines) == 0 {
			continue
		}
		s.Trial = i
		n := size.of(&s)
		if n > room || shown == maxTrials {
			d.Omitted = omitted(shown, len(order)-at, lost)
			break
		}
		room -= n
		shown++
		d.Series = append(d.Series, s)
	}
	if d.Omitted == "" && lost > 0 {
		d.Omitted = omitted(shown, 0, lost)
	}
	slices.SortFunc(d.Series, func(x, y TrialSeries) int { return x.Trial - y.Trial })
}

// reading is what came of one trial's series.
type reading struct {
	series TrialSeries
	err    error
}

// readSeries reads files side by side; what they say is in the order of trials.
func (b *Builder) readSeries(trials []int, read ReadSeries) []reading {
	out := make([]reading, len(trials))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(trials), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(trials); k = int(next.Add(1)) - 1 {
				x := &b.trials[trials[k]]
				s, err := Lines(&record.Trial{Seq: x.seq, Attempt: x.attempt}, read)
				s.Lines = slices.DeleteFunc(s.Lines, func(l Line) bool { return !essential(l.Name) })
				out[k] = reading{s, err}
			}
		})
	}
	wg.Wait()
	return out
}

func omitted(shown, left, lost int) string {
	var parts []string
	if left > 0 {
		parts = append(parts, fmt.Sprintf("Time series of %s are here, of %d more there is no room; `tare serve DIR` shows them all", words.Count(shown, "trial"), left))
	}
	switch {
	case lost > 0 && shown == 0 && left == 0:
		parts = append(parts, fmt.Sprintf("The time series of %s are on record and cannot be read, so that there is none to show", words.Count(lost, "trial")))
	case lost > 0 && left == 0:
		parts = append(parts, fmt.Sprintf("The time series of %s cannot be read", words.Count(lost, "more trial")))
	case lost > 0:
		parts = append(parts, fmt.Sprintf("those of %s cannot be read", words.Count(lost, "trial")))
	}
	return strings.Join(parts, "; ")
}

// candidates are the trials in the order in which their series get room.
func (b *Builder) candidates() []int {
	byCell := make([][]int, len(b.cells)) // good trials, the last first
	for i := len(b.trials) - 1; i >= 0; i-- {
		if x := &b.trials[i]; x.ok {
			byCell[x.cell] = append(byCell[x.cell], i)
		}
	}
	var strata [][]int // cells
	at := make(map[string]int)
	for i, c := range b.cells {
		k, ok := at[c.Stratum]
		if !ok {
			k = len(strata)
			at[c.Stratum] = k
			strata = append(strata, nil)
		}
		strata[k] = append(strata[k], i)
	}
	var out []int
	deepest := 0
	for _, t := range byCell {
		deepest = max(deepest, len(t))
	}
	for depth := range deepest {
		for nth, more := 0, true; more; nth++ {
			more = false
			for _, cells := range strata {
				if nth < len(cells) {
					more = true
					if t := byCell[cells[nth]]; depth < len(t) {
						out = append(out, t[depth])
					}
				}
			}
		}
	}
	return out
}

// sizer tells about how many bytes a value takes in the compressed document.
type sizer struct{ w *flate.Writer }

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func (s *sizer) of(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // there is nothing in it that JSON cannot take
	}
	var n counter
	if s.w == nil {
		if s.w, err = flate.NewWriter(&n, flate.BestSpeed); err != nil {
			return len(b)
		}
	} else {
		s.w.Reset(&n)
	}
	if _, err := s.w.Write(b); err != nil {
		return len(b)
	}
	if err := s.w.Close(); err != nil {
		return len(b)
	}
	return int(seriesFactor * float64(n))
}

// essential chooses the lines that are in the file: CPU and run-queue wait by
// role, memory, throttling, the machine's processors and the workload's own
// figures. `tare serve` has all lines of Lines.
func essential(name string) bool {
	switch name {
	case "cpu", "run_wait", "cgroup_memory", "cgroup_throttled", "system_cpu", "system_running":
		return true
	}
	for _, collector := range []string{"cgroup_", "system_", "collector_", "threads"} {
		if strings.HasPrefix(name, collector) {
			return false
		}
	}
	return true
}

// Lines makes the lines of a trial: CPU and run-queue wait by role
// and end, what the kernel charges to the cgroups, the workload's own figures and
// the whole machine. Counters become rates. Single threads are left out: there
// are hundreds, and their role has their sum. Trial is not set.
func Lines(t *record.Trial, read ReadSeries) (TrialSeries, error) {
	all, err := read(t)
	if err != nil {
		return TrialSeries{}, err
	}
	out := TrialSeries{Lines: []Line{}}
	for i := range all {
		s := &all[i]
		if len(out.Lines) == maxLines {
			break
		}
		if strings.HasPrefix(s.Name, "thread_") || s.Labels.Get("tid") != "" || len(s.T) != len(s.V) {
			continue
		}
		l := Line{Name: s.Name, Labels: string(s.Labels), Unit: s.Unit}
		if s.Kind == record.Counter {
			l.Name, l.Unit = rateName(s)
			l.T, l.V = rates(s.T, s.V)
		} else {
			for j, v := range s.V {
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					l.T, l.V = append(l.T, s.T[j].Seconds()), append(l.V, v)
				}
			}
		}
		if len(l.V) < 2 || flat(l.V) && l.V[0] == 0 {
			continue // a line at zero says nothing that its absence does not
		}
		l.T, l.V = thin(l.T, l.V, maxPoints)
		for j := range l.V {
			l.T[j], l.V[j] = math.Round(l.T[j]*1000)/1000, round(l.V[j], 3)
		}
		out.Lines = append(out.Lines, l)
	}
	return out, nil
}

// rateName names the rate of a counter: seconds of CPU a second are cores.
func rateName(s *record.Series) (string, record.Unit) {
	switch s.Unit {
	case record.Second:
		return strings.TrimSuffix(s.Name, "_time"), record.Cores
	case record.Byte:
		return s.Name, record.BytesPerSecond
	}
	return s.Name, record.PerSecond
}

// rates takes differences, each at the end of its stretch of time. A counter that
// falls began anew.
func rates(t []time.Duration, v []float64) (at, rate []float64) {
	for i := 1; i < len(v); i++ {
		dt := (t[i] - t[i-1]).Seconds()
		dv := v[i] - v[i-1]
		if dt <= 0 || dv < 0 || math.IsNaN(dv) || math.IsInf(dv, 0) {
			continue
		}
		at, rate = append(at, t[i].Seconds()), append(rate, dv/dt)
	}
	return at, rate
}

func flat(v []float64) bool { return slices.Min(v) == slices.Max(v) }

// thin keeps at most n points: of each stretch of readings the least and the
// greatest, in order, and the two ends. A mean would take the peaks away, which
// are what one looks for.
func thin(t, v []float64, n int) ([]float64, []float64) {
	if len(v) <= n {
		return t, v
	}
	buckets := (n - 2) / 2
	keep := []int{0}
	inner := len(v) - 2
	for b := range buckets {
		from, to := 1+b*inner/buckets, 1+(b+1)*inner/buckets
		lo, hi := from, from
		for i := from; i < to; i++ {
			if v[i] < v[lo] {
				lo = i
			}
			if v[i] > v[hi] {
				hi = i
			}
		}
		keep = append(keep, min(lo, hi))
		if lo != hi {
			keep = append(keep, max(lo, hi))
		}
	}
	keep = append(keep, len(v)-1)
	nt, nv := make([]float64, len(keep)), make([]float64, len(keep))
	for i, k := range keep {
		nt[i], nv[i] = t[k], v[k]
	}
	return nt, nv
}
