package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/flate"

	"tare/ordered"
	"tare/record"
	"tare/report/words"
)

// maxTrials bounds those with series in the file: each is a file to be read, and
// half a millisecond.
const maxTrials = 400

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
	perCost      = 45
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
	var size sizer
	if d.Causes != nil {
		room -= size.of(d.Causes)
	}
	room = max(room, leastSeries)
	if d.Result != nil { // these take of the least, too: both are of what the collectors read
		room -= perCost * min(len(d.Result.CPUCosts)+len(d.Result.Quotas), leastSeries/2/perCost)
	}
	order, next := b.order, b.ahead
	var lost []string // names of trials
	var late, shown int
	for at, i := range order {
		if len(next) == 0 { // those read ahead had nothing to show
			next = b.readSeries(order[at:min(at+2*readers(), len(order))], read)
		}
		s, err := next[0].series, next[0].err
		next = next[1:]
		if errors.Is(err, ErrNoTime) {
			late++
			continue
		}
		if err != nil {
			lost = append(lost, fmt.Sprintf("%d-%d", b.trials[i].seq, b.trials[i].attempt))
			continue
		}
		if len(s.Lines) == 0 {
			continue
		}
		s.Trial, s.Window = i, b.trials[i].window()
		n := size.of(&s)
		if n > room || shown == maxTrials {
			d.Omitted = omitted(shown, len(order)-at, late, lost)
			break
		}
		room -= n
		shown++
		d.Series = append(d.Series, s)
	}
	if d.Omitted == "" && len(lost)+late > 0 {
		d.Omitted = omitted(shown, 0, late, lost)
	}
	slices.SortFunc(d.Series, func(x, y TrialSeries) int { return x.Trial - y.Trial })
}

// phaseRun is the phase of a trial whose samples count (run.PhaseRun).
const phaseRun = "run"

func (x *trial) window() []float64 {
	if x.to <= x.from {
		return nil
	}
	return []float64{tenths(x.from), tenths(x.to)}
}

// reading is what came of one trial's series.
type reading struct {
	series TrialSeries
	err    error
}

// maxReaders is how many files are read side by side: package store lets no more be read at
// the same time.
const maxReaders = 2

// ErrNoTime of a ReadSeries: the series of this report have taken too long together. This
// one and the rest are left out, and counted in Omitted.
var ErrNoTime = errors.New("the time for reading series is used up")

func readers() int { return min(runtime.GOMAXPROCS(0), maxReaders) }

// readSeries reads files side by side; what they say is in the order of trials.
func (b *Builder) readSeries(trials []int, read ReadSeries) []reading {
	out := make([]reading, len(trials))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(trials), readers()) {
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

// maxNamed bounds the names that a sentence lists.
const maxNamed = 8

// omitted says which series are not shown: left and late are numbers of trials, lost are names
// of those whose file is missing or does not verify.
func omitted(shown, left, late int, lost []string) string {
	var parts []string
	if left > 0 {
		parts = append(parts, fmt.Sprintf("This page has the time series of %s, and no room for %d more; `tare serve DIR` shows them all", words.Count(shown, "trial"), left))
	}
	if late > 0 {
		parts = append(parts, fmt.Sprintf("The time series of %s are left out, because reading took too long; `tare serve DIR` shows those of one trial at a time", words.Count(late, "trial")))
	}
	n, names := len(lost), ": "+strings.Join(lost[:min(len(lost), maxNamed)], ", ")
	if n > maxNamed {
		names += fmt.Sprintf(" and %d more", n-maxNamed)
	}
	switch {
	case n > 0 && shown == 0 && left == 0:
		parts = append(parts, fmt.Sprintf("The time series of %s are stored but cannot be read, so none is shown", words.Count(n, "trial"))+names)
	case n > 0 && left == 0:
		parts = append(parts, fmt.Sprintf("The time series of %s cannot be read", words.Count(n, "more trial"))+names)
	case n > 0:
		parts = append(parts, fmt.Sprintf("those of %s cannot be read", words.Count(n, "trial"))+names)
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
	var byStratum ordered.Groups[string, int] // cells
	for i, c := range b.cells {
		byStratum.Add(c.Stratum, i)
	}
	strata := byStratum.Lists()
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
