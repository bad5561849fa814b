package plan

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// makeStudy has one stratum a workload, each with a baseline "t0" and
// treatments "t1"...
func makeStudy(strata, treatments int) *study.Study {
	st := &study.Study{Name: "test", Seed: 1, Compare: "sandbox", Baseline: "t0",
		Stop: study.Stop{Looks: []int{3, 4, 6, 8, 12, 16}, Confidence: 0.95, Width: 0.015, Margin: 0.03}}
	for i := range strata {
		w := record.Level{Factor: "workload", Value: fmt.Sprintf("w%d", i)}
		st.Workloads = append(st.Workloads, study.Workload{Label: w.Value, Kind: "noop", Responses: []string{"time"}})
		s := study.Stratum{Key: record.Cell{w}.Key(), Shared: record.Cell{w}, Workload: i}
		for k := range treatments {
			s.Cells = append(s.Cells, record.Cell{w, {Factor: "sandbox", Value: fmt.Sprintf("t%d", k)}})
		}
		st.Strata = append(st.Strata, s)
	}
	return st
}

// world says how each trial turns out.
type world struct {
	seed     uint64
	noise    float64 // log standard deviation; 0: each workload its own
	calm     int     // blocks without noise, the first ones: no effect shows there
	fail     float64
	always   func(Next) bool // fails whatever happens
	kind     string          // of these failures
	duration time.Duration
	effect   func(sandbox string) float64
}

func (w world) trial(n Next) *record.Trial {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d %d", n.Cell.Key(), n.Block, n.Attempt)
	r := rand.New(rand.NewPCG(w.seed, h.Sum64()))
	d := w.duration
	if d == 0 {
		d = time.Duration(1+r.IntN(2000)) * time.Millisecond
	}
	t := &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: d}
	if r.Float64() < w.fail || w.always != nil && w.always(n) {
		t.Status, t.Failure = record.Failed, &record.Failure{Kind: w.kind, Reason: "it died"}
		return t
	}
	sd := w.noise
	name, _ := n.Cell.Get("workload")
	if sd == 0 {
		sd = 0.002 * math.Pow(3, float64(len(name)+int(name[len(name)-1])%5))
	}
	if n.Block <= w.calm {
		sd = 0
	}
	box, _ := n.Cell.Get("sandbox")
	mean := 0.0
	if w.effect != nil {
		mean = w.effect(box)
	}
	t.Samples = []record.Sample{{Name: "time", Unit: record.Second, Value: math.Exp(mean + sd*r.NormFloat64())}}
	return t
}

// play runs a plan to its end.
func play(t *testing.T, p *Plan, w world) (order []Next, trials []*record.Trial) {
	t.Helper()
	for {
		n, ok := p.Next()
		if !ok {
			return order, trials
		}
		if again, _ := p.Next(); !cmp.Equal(n, again) {
			t.Fatalf("asked twice: %v, then %v", n, again)
		}
		trial := w.trial(n)
		order, trials = append(order, n), append(trials, trial)
		p.Done(trial)
		if len(order) > 1e6 {
			t.Fatal("the plan does not end")
		}
	}
}

func TestBlocksAreWhole(t *testing.T) {
	st := makeStudy(5, 4)
	order, _ := play(t, New(st, nil, nil), world{noise: 1})
	if len(order) != 5*4*16 {
		t.Fatalf("%d trials, want all looks of everything", len(order))
	}
	first := map[string]bool{}
	for i := 0; i < len(order); i += 4 {
		seen := map[string]bool{}
		for k, n := range order[i : i+4] {
			if n.Stratum != order[i].Stratum || n.Block != i/20+1 || n.Seq != i+k+1 || n.Attempt != 1 {
				t.Fatalf("trial %d is out of its block: %+v", i+k, n)
			}
			seen[n.Cell.Key()] = true
		}
		if len(seen) != 4 {
			t.Fatalf("block at %d has %v", i, seen)
		}
		box, _ := order[i].Cell.Get("sandbox")
		first[box] = true
	}
	if len(first) != 4 {
		t.Errorf("only %v ever come first in a block", first)
	}
	other := *st
	other.Seed = 2
	if again, _ := play(t, New(&other, nil, nil), world{noise: 1}); cmp.Equal(order, again) {
		t.Error("the seed changes nothing")
	}
	if d := cmp.Diff(order[:20], New(st, nil, nil).Preview(0)); d != "" {
		t.Errorf("preview differs:\n%s", d)
	}
	if got := New(st, nil, nil).Preview(3); len(got) != 3 {
		t.Errorf("preview of 3 has %d", len(got))
	}
}

// TestOrderIsPinned fails when a change, ours or Go's, would make old studies
// resume in another order.
func TestOrderIsPinned(t *testing.T) {
	var got []string
	for _, n := range New(makeStudy(3, 3), nil, nil).Preview(0) {
		w, _ := n.Cell.Get("workload")
		b, _ := n.Cell.Get("sandbox")
		got = append(got, w+b)
	}
	const want = "w2t2 w2t1 w2t0 w1t1 w1t2 w1t0 w0t2 w0t1 w0t0"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("order is %q, was %q", s, want)
	}
}

func TestSkipsDoNotReshuffle(t *testing.T) {
	st := makeStudy(4, 4)
	gone := st.Strata[2].Cells[3]
	var want []string
	for _, n := range New(st, nil, nil).Preview(0) {
		if n.Cell.Key() != gone.Key() {
			want = append(want, n.Cell.Key())
		}
	}
	var got []string
	for _, n := range New(st, []record.Skip{{Cell: gone, Reason: "no"}, {Cell: record.Cell{{Factor: "x", Value: "y"}}}}, nil).Preview(0) {
		got = append(got, n.Cell.Key())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestResume interrupts random studies at random places, feeds what was done in
// random order to a new plan, and wants the sequence of the uninterrupted one.
func TestResume(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		st := makeStudy(1+r.IntN(5), 1+r.IntN(4))
		st.Seed, st.Retries = seed, r.IntN(3)
		if r.IntN(3) == 0 {
			st.Stop.Fixed = 1 + r.IntN(8)
		}
		if r.IntN(3) == 0 {
			st.Budget.Blocks = 1 + r.IntN(10)
		}
		if r.IntN(2) == 0 {
			st.Budget.Time = time.Duration(r.IntN(100)) * time.Second
		}
		var skips []record.Skip
		if r.IntN(3) == 0 {
			s := st.Strata[r.IntN(len(st.Strata))]
			skips = []record.Skip{{Cell: s.Cells[r.IntN(len(s.Cells))], Reason: "not here"}}
		}
		w := world{seed: seed, fail: []float64{0, 0.05, 0.4}[r.IntN(3)]}
		whole := New(st, skips, nil)
		order, trials := play(t, whole, w)
		for range 6 {
			cut := r.IntN(len(order) + 1)
			p := New(st, skips, nil)
			part := slices.Clone(trials[:cut])
			r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			for i, trial := range part {
				p.Done(trial)
				if r.IntN(10) == 0 || i == len(part)/2 {
					p.Next() // asking in between changes nothing
				}
			}
			if n, ok := p.Next(); ok && r.IntN(2) == 0 && cut < len(order) {
				// A Ctrl-C while it ran: noted, repeated, not counted.
				p.Done(&record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.Failed,
					Duration: time.Hour, Failure: &record.Failure{Kind: "interrupted", Reason: "Ctrl-C"}})
			}
			var rest []Next
			for {
				n, ok := p.Next()
				if !ok {
					break
				}
				at := cut + len(rest)
				if at >= len(order) {
					t.Fatalf("seed %d, cut at %d of %d: goes on with %+v", seed, cut, len(order), n)
				}
				o := order[at]
				if n.Cell.Key() != o.Cell.Key() || n.Block != o.Block || n.Stratum != o.Stratum {
					t.Fatalf("seed %d, cut at %d of %d: trial %d is %+v, want %+v", seed, cut, len(order), at, n, o)
				}
				rest = append(rest, n)
				done := *trials[at]
				done.Attempt, done.Seq = n.Attempt, n.Seq
				p.Done(&done)
			}
			if cut+len(rest) != len(order) || p.Reason() != whole.Reason() {
				t.Fatalf("seed %d, cut at %d: ends after %d with %q, want %d with %q", seed, cut, cut+len(rest), p.Reason(), len(order), whole.Reason())
			}
		}
	}
}

func TestEndings(t *testing.T) {
	twice := func(s string) float64 {
		if s == "t0" {
			return 0
		}
		return math.Ln2
	}
	for _, c := range []struct {
		name   string
		edit   func(*study.Study)
		skip   bool // the baselines
		w      world
		code   string
		blocks int
	}{
		{"clear", nil, false, world{noise: 0.01, effect: twice}, EndDecided, 4},
		{"equal and quiet", nil, false, world{noise: 0.001}, EndDecided, 3},
		{"noisy", nil, false, world{noise: 2}, EndLooks, 16},
		{"fixed", func(s *study.Study) { s.Stop.Fixed = 5 }, false, world{noise: 0.01, effect: twice}, EndFixed, 5},
		{"budget of blocks", func(s *study.Study) { s.Budget.Blocks = 5 }, false, world{noise: 2}, EndBudgetBlocks, 5},
		{"less blocks than fixed", func(s *study.Study) { s.Stop.Fixed, s.Budget.Blocks = 5, 2 }, false, world{noise: 2}, EndBudgetBlocks, 2},
		{"no baseline", func(s *study.Study) { s.Strata[0].Baseline, s.Strata[1].Baseline = -1, -1 }, false, world{noise: 1}, EndNoComparison, 3},
		{"baseline not here", nil, true, world{noise: 1}, EndNoComparison, 3},
		{"baseline fails", nil, false, world{noise: 1, always: boxFails("t0")}, EndGaveUp, 3},
		{"all else fails", nil, false, world{noise: 1, always: func(n Next) bool { return !boxFails("t0")(n) }}, EndGaveUp, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := makeStudy(2, 3)
			if c.edit != nil {
				c.edit(st)
			}
			var skips []record.Skip
			if c.skip {
				skips = []record.Skip{{Cell: st.Strata[0].Cells[0]}, {Cell: st.Strata[1].Cells[0]}}
			}
			p := New(st, skips, nil)
			play(t, p, c.w)
			for i := range st.Strata {
				e, ok := p.Ending(i)
				if !ok || e.Code != c.code || e.Blocks != c.blocks || e.Text == "" {
					t.Errorf("stratum %d ended %v %+v, want %s after %d", i, ok, e, c.code, c.blocks)
				}
			}
			if p.Reason() == "" {
				t.Error("no reason")
			}
		})
	}
}

// TestLostBlocks: a block in which a trial failed for good is not counted as one that was asked for.
func TestLostBlocks(t *testing.T) {
	st := makeStudy(2, 2)
	st.Stop.Fixed = 4
	p := New(st, nil, nil)
	play(t, p, world{noise: 0.01, always: func(n Next) bool { return n.Stratum == 1 && n.Block == 2 && boxFails("t1")(n) }})
	const whole, lost = "all 4 blocks that were asked for", "3 of the 4 blocks that were asked for (a trial failed in the rest)"
	for i, want := range []string{whole, lost} {
		if e, _ := p.Ending(i); e.Code != EndFixed || e.Text != want {
			t.Errorf("stratum %d ended %+v, want %q", i, e, want)
		}
	}
	st.Stop.Fixed = 1
	one := New(st, nil, nil)
	play(t, one, world{noise: 0.01, always: func(n Next) bool { return n.Stratum == 1 && boxFails("t1")(n) }})
	if e, _ := one.Ending(1); e.Text != "a trial failed in the only block that was asked for" {
		t.Errorf("of one block: %+v", e)
	}
	if got := p.Reason(); !strings.Contains(got, "1 of 2 workload variants: "+whole) || !strings.Contains(got, "1 of 2 workload variants: "+lost) {
		t.Errorf("the study ended: %s", got)
	}
}

// TestNarrowTreatmentDropsOut: what is narrow enough has no part in later blocks, and the last
// time goes to what is wide. It does not matter where the study is interrupted.
func TestNarrowTreatmentDropsOut(t *testing.T) {
	st := makeStudy(3, 3)
	st.Budget.Time = time.Hour
	quiet := func(n Next) *record.Trial {
		tr := world{noise: 0.0005, duration: time.Second}.trial(n)
		if box, _ := n.Cell.Get("sandbox"); box == "t2" {
			tr.Samples[0].Value *= world{noise: 0.1 * math.Pow(10, float64(n.Stratum))}.trial(n).Samples[0].Value
		}
		return tr
	}
	p := New(st, nil, nil)
	var order []Next
	for n, ok := p.Next(); ok; n, ok = p.Next() {
		order = append(order, n)
		p.Done(quiet(n))
		resumed := New(st, nil, nil)
		for _, o := range order {
			resumed.Done(quiet(o))
		}
		a, more := p.Next()
		b, too := resumed.Next()
		if more != too || !cmp.Equal(a, b) {
			t.Fatalf("after %d trials: %+v, resumed %+v", len(order), a, b)
		}
	}
	last := map[string]int{}
	for _, n := range order {
		last[n.Cell.Key()] = n.Block
	}
	for i := range st.Strata {
		for k, want := range []int{16, 3, 16} {
			if got := last[st.Strata[i].Cells[k].Key()]; got != want {
				t.Errorf("%s: last in block %d, want %d", st.Strata[i].Cells[k].Key(), got, want)
			}
		}
	}
	for i := 3 * 3 * 3; i < len(order); i += 6 {
		if a, b, c := order[i].Stratum, order[i+2].Stratum, order[i+4].Stratum; a < b || b < c {
			t.Fatalf("block %d begins with %d, %d, %d; want the widest first", order[i].Block, a, b, c)
		}
	}
}

func boxFails(names ...string) func(Next) bool {
	return func(n Next) bool {
		s, _ := n.Cell.Get("sandbox")
		return slices.Contains(names, s)
	}
}

func TestSkippedStratum(t *testing.T) {
	st := makeStudy(1, 2)
	p := New(st, []record.Skip{{Cell: st.Strata[0].Cells[0]}, {Cell: st.Strata[0].Cells[1]}}, nil)
	if n, ok := p.Next(); ok {
		t.Errorf("%+v", n)
	}
	if e, _ := p.Ending(0); e.Code != EndSkipped {
		t.Errorf("%+v", e)
	}
	empty := New(&study.Study{}, nil, nil)
	if _, ok := empty.Next(); ok || empty.Reason() == "" {
		t.Errorf("a study of nothing: %q", empty.Reason())
	}
}

func TestRetriesAndGivingUp(t *testing.T) {
	st := makeStudy(2, 3)
	st.Retries = 1
	p := New(st, nil, nil)
	order, _ := play(t, p, world{noise: 2, always: func(n Next) bool {
		w, _ := n.Cell.Get("workload")
		return w == "w0" && boxFails("t2")(n)
	}})
	bad := st.Strata[0].Cells[2]
	var tries []string
	for i, n := range order {
		if n.Cell.Key() != bad.Key() {
			continue
		}
		tries = append(tries, fmt.Sprintf("%d.%d", n.Block, n.Attempt))
		if n.Attempt == 2 && order[i-1].Cell.Key() != bad.Key() {
			t.Error("a retry does not follow at once")
		}
	}
	if d := cmp.Diff([]string{"1.1", "1.2", "2.1", "2.2", "3.1", "3.2"}, tries); d != "" {
		t.Error(d)
	}
	if why := p.GaveUp(bad); !strings.Contains(why, "it died") {
		t.Errorf("given up because %q", why)
	}
	if e, _ := p.Ending(0); e.Code != EndLooks || e.Blocks != 16 {
		t.Errorf("the others did not go on: %+v", e)
	}
}

// TestUnfitIsGivenUpAtOnce: a program that prints something else than the study looks for does so in
// every block. One that has been good before may be again.
func TestUnfitIsGivenUpAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fails  func(Next) bool
		blocks int // of the cell t1
		code   string
	}{
		"a treatment":         {boxFails("t1"), 1, EndLooks},
		"the baseline":        {boxFails("t0"), 1, EndGaveUp},
		"after a good block":  {func(n Next) bool { return n.Block > 1 && boxFails("t1")(n) }, 4, EndLooks},
		"before a good block": {func(n Next) bool { return n.Block == 1 && n.Attempt == 1 && boxFails("t1")(n) }, 16, EndLooks},
	} {
		st := makeStudy(1, 3)
		st.Retries = 1
		p := New(st, nil, nil)
		order, _ := play(t, p, world{noise: 2, always: c.fails, kind: record.Unfit})
		blocks := 0
		for _, n := range order {
			if boxFails("t1")(n) {
				blocks = max(blocks, n.Block)
			}
		}
		if e, _ := p.Ending(0); blocks != c.blocks || e.Code != c.code {
			t.Errorf("%s: t1 in %d blocks, want %d; the end: %+v", name, blocks, c.blocks, e)
		}
	}
}

// TestNoImage: a cell whose image cannot be had is tried once and left out. A later session tries it again, in all blocks. A cell that
// has been good is only left out of the block.
func TestNoImage(t *testing.T) {
	st := makeStudy(1, 3)
	st.Retries, st.Stop.Fixed = 1, 5
	tries := func(order []Next) string {
		var out []string
		for _, n := range order {
			if boxFails("t1")(n) {
				out = append(out, fmt.Sprintf("%d.%d", n.Block, n.Attempt))
			}
		}
		return strings.Join(out, " ")
	}
	absent := world{noise: 2, always: boxFails("t1"), kind: record.NoImage}
	p := New(st, nil, nil)
	order, trials := play(t, p, absent)
	if got := tries(order); got != "1.1" || len(order) != 11 {
		t.Errorf("%d trials, of t1 %s", len(order), got)
	}
	refused := absent
	refused.kind = record.Refused
	if order, _ := play(t, New(st, nil, nil), refused); tries(order) != "1.1" {
		t.Errorf("what the site does not admit is tried in %s", tries(order))
	}
	if s := p.Skipped(); len(s) != 1 || s[0].Cell.Key() != st.Strata[0].Cells[1].Key() || s[0].Reason != "it died" {
		t.Errorf("skipped: %v", s)
	}
	later := New(st, nil, nil)
	for _, x := range trials {
		x.Session = 1
		again := *x
		if x.Status == record.Failed {
			again.Failure = &record.Failure{Kind: record.Interrupted}
		}
		later.Done(&again)
	}
	order, more := play(t, later, world{noise: 2})
	if got := tries(order); got != "1.2 2.1 3.1 4.1 5.1" || len(order) != 5 {
		t.Errorf("a later session makes %d trials, of t1 %s", len(order), got)
	}
	whole := New(st, nil, nil)
	for _, x := range more {
		x.Session = 2
	}
	for _, x := range slices.Concat(trials, more) {
		whole.Done(x)
	}
	if _, open := whole.Next(); open || len(whole.Skipped()) > 0 || whole.GaveUp(st.Strata[0].Cells[1]) != "" {
		t.Errorf("both sessions together: %v, %v", open, whole.Skipped())
	}
	absent.always = func(n Next) bool { return n.Block%2 == 0 && boxFails("t1")(n) }
	p = New(st, nil, nil)
	order, _ = play(t, p, absent)
	if got := tries(order); got != "1.1 2.1 3.1 4.1 5.1" || len(p.Skipped()) > 0 {
		t.Errorf("after a good block: %s, %v", got, p.Skipped())
	}
	absent.always = boxFails("t0")
	p = New(st, nil, nil)
	play(t, p, absent)
	if e, _ := p.Ending(0); e.Code != EndGaveUp || e.Blocks != 1 {
		t.Errorf("the baseline: %+v", e)
	}
}

// TestFailureThatPasses: two blocks without a value, then a good one.
func TestFailureThatPasses(t *testing.T) {
	st := makeStudy(1, 2)
	p := New(st, nil, nil)
	order, _ := play(t, p, world{noise: 2, always: func(n Next) bool { return n.Block%3 != 0 && boxFails("t1")(n) }})
	if len(order) != 32 || p.GaveUp(st.Strata[0].Cells[1]) != "" {
		t.Errorf("%d trials, given up %q", len(order), p.GaveUp(st.Strata[0].Cells[1]))
	}
}

func TestTimeBudget(t *testing.T) {
	for _, c := range []struct {
		budget time.Duration
		blocks []int // of each stratum
	}{
		{time.Second, []int{1, 1, 1, 1}},      // the first pass is whole, whatever it takes
		{12 * time.Second, []int{1, 1, 1, 1}}, // exactly the first pass
		{19 * time.Second, []int{3, 1, 1, 1}}, // two blocks more of one
		{30 * time.Second, []int{3, 3, 3, 1}}, // of three
		{36 * time.Second, []int{3, 3, 3, 3}}, // of all
		{60 * time.Second, []int{5, 5, 5, 5}}, // five passes
		{600 * time.Second, []int{16, 16, 16, 16}},
	} {
		st := makeStudy(4, 3)
		st.Budget.Time = c.budget
		p := New(st, nil, nil)
		order, trials := play(t, p, world{noise: 2, calm: 1, duration: time.Second})
		if len(order)%3 != 0 {
			t.Errorf("%s: a block is cut", c.budget)
		}
		var got []int
		for i := range st.Strata {
			e, _ := p.Ending(i)
			got = append(got, e.Blocks)
			if e.Blocks < 16 && e.Code != EndBudgetTime {
				t.Errorf("%s: stratum %d ended by %s", c.budget, i, e.Code)
			}
		}
		if d := cmp.Diff(c.blocks, got); d != "" {
			t.Errorf("%s:\n%s", c.budget, d)
		}
		if spent := time.Duration(len(trials)) * time.Second; spent > max(c.budget, 12*time.Second) {
			t.Errorf("%s: took %s", c.budget, spent)
		}
	}
}

// TestTimeBudgetSaysBlocks: of a study that stops sooner than others may, the blocks are
// named that it stops at.
func TestTimeBudgetSaysBlocks(t *testing.T) {
	for fixed, want := range map[int]string{2: "the time (13s in all) is too short for 2 blocks here; repeat the command with a larger budget to continue", 16: "too short for 3 blocks here"} {
		st := makeStudy(4, 3)
		st.Budget.Time, st.Stop.Fixed = 13*time.Second, fixed
		p := New(st, nil, nil)
		play(t, p, world{noise: 2, duration: time.Second})
		e, ended := p.Ending(3)
		if !ended || e.Code != EndBudgetTime || !strings.Contains(e.Text, want) {
			t.Errorf("fixed %d: %+v, want %q", fixed, e, want)
		}
	}
}

func TestLateAndStrayResults(t *testing.T) {
	st := makeStudy(2, 2)
	p := New(st, nil, nil)
	w := world{noise: 1}
	order, trials := play(t, p, w)
	// A result that fails a trial after all reopens its block.
	bad := *trials[5]
	bad.Status, bad.Failure = record.Failed, &record.Failure{Kind: "garbage"}
	p.Done(&bad)
	st.Retries = 1
	if n, ok := p.Next(); !ok || n.Cell.Key() != order[5].Cell.Key() || n.Attempt != 2 || n.Seq != len(order)+1 {
		t.Errorf("next is %+v %v", n, ok)
	}
	p.Done(&record.Trial{Block: 1, Cell: record.Cell{{Factor: "a", Value: "b"}}})
	p.Done(&record.Trial{Block: 1 << 40, Cell: st.Strata[0].Cells[0]})
	p.Done(&record.Trial{Block: 0, Cell: st.Strata[0].Cells[0]})
	if p.Strays() != 3 {
		t.Errorf("%d strays", p.Strays())
	}
}
