package plan

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/analyse/tune"
	"tare/record"
	"tare/study"
)

// saturates is a world whose cost falls with the level until the fifth.
func saturates(seed uint64) world {
	return world{seed: seed, noise: 0.02, effect: func(sandbox string) float64 {
		level, err := strconv.Atoi(strings.TrimPrefix(sandbox, "t"))
		if err != nil {
			panic(err)
		}
		return -math.Log(min(0.2*float64(level+1), 1))
	}}
}

// TestTune: a study finds the lowest level that reaches 90 % of the best in a quarter of the trials. It
// measures whole blocks first, and later only what may be the answer. Killed anywhere and resumed with
// its results in any order, it goes on as it would have.
func TestTune(t *testing.T) {
	for seed := range uint64(4) {
		st := makeStudy(2, 12)
		st.Stop.Looks, st.Stop.Width, st.Stop.Tune = nil, 0, 0.9
		for i := range st.Strata {
			st.Strata[i].Better = record.Lower
		}
		w := saturates(seed)
		whole := New(st, nil, nil)
		order, trials := play(t, whole, w)
		for i := range st.Strata {
			step, ok := whole.Tuned(i)
			if !ok || step.Answer != 4 || step.Stage != tune.Found {
				t.Fatalf("seed %d: found %+v", seed, step)
			}
			if e, _ := whole.Ending(i); e.Code != EndFound {
				t.Errorf("seed %d: %+v", seed, e)
			}
		}
		if len(order) > 2*12*16/4 {
			t.Errorf("seed %d: %d trials, want a quarter of %d", seed, len(order), 2*12*16)
		}
		r := rand.New(rand.NewPCG(seed, 3))
		for cut := 0; cut < len(order); cut += 3 {
			p := New(st, nil, nil)
			part := slices.Clone(trials[:cut])
			r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			for _, x := range part {
				p.Done(x)
			}
			if n, ok := p.Next(); !ok || n.Cell.Key() != order[cut].Cell.Key() || n.Block != order[cut].Block {
				t.Fatalf("seed %d, cut at %d: %+v, want %+v", seed, cut, n, order[cut])
			}
		}
	}
}

// TestTuneSeveral: of two factors, a study finds the combination of fewest steps that reaches 90 % of the best, which a
// limit by the scarcer of the two makes unique. A level that cannot run is not in it. Resumed, the study goes on as it would have.
func TestTuneSeveral(t *testing.T) {
	const rows, columns = 9, 7
	st := makeStudy(1, rows*columns)
	st.Stop.Looks, st.Stop.Width, st.Stop.Tune, st.Stop.Factors = nil, 0, 0.9, []string{"sandbox", "b"}
	st.Strata[0].Better = record.Lower
	var skips []record.Skip
	for k, c := range st.Strata[0].Cells {
		st.Strata[0].Places = append(st.Strata[0].Places, []int{k / columns, k % columns})
		if k/columns == 4 && k%columns == 3 {
			skips = append(skips, record.Skip{Cell: c, Reason: "not here"})
		}
	}
	for seed := range uint64(3) {
		w := world{seed: seed, noise: 0.01, effect: func(sandbox string) float64 {
			k, err := strconv.Atoi(strings.TrimPrefix(sandbox, "t"))
			if err != nil {
				panic(err)
			}
			return -math.Log(min(0.2*float64(k/columns+1), 0.25*float64(k%columns+1), 1))
		}}
		for _, c := range []struct {
			skips []record.Skip
			want  [][]int
		}{{nil, [][]int{{4, 3}}}, {skips, [][]int{{4, 4}, {5, 3}}}} {
			whole := New(st, c.skips, nil)
			order, trials := play(t, whole, w)
			step, _ := whole.Tuned(0)
			if at := st.Strata[0].Places[step.Answer]; step.Stage != tune.Found || !slices.ContainsFunc(c.want, func(x []int) bool { return slices.Equal(x, at) }) {
				t.Errorf("seed %d: %s at %v, want %v", seed, step.Stage, at, c.want)
			}
			if e, _ := whole.Ending(0); e.Code != EndFound || !strings.HasPrefix(e.Text, "the levels are found") {
				t.Errorf("seed %d: %+v", seed, e)
			}
			if len(order) > rows*columns*16/4 {
				t.Errorf("seed %d: %d trials, want a quarter of %d", seed, len(order), rows*columns*16)
			}
			again := New(st, c.skips, nil)
			for _, x := range trials[:len(trials)/2] {
				again.Done(x)
			}
			if n, ok := again.Next(); !ok || n.Cell.Key() != trials[len(trials)/2].Cell.Key() {
				t.Errorf("seed %d: resumed at %s", seed, n.Cell)
			}
		}
	}
}

// sizes is a study of one workload over so many sizes, whose levels are the treatments.
func sizes(n, treatments int) *study.Study {
	st := makeStudy(n, treatments)
	f := study.Factor{Name: "size"}
	for i := range st.Strata {
		s, size := &st.Strata[i], record.Level{Factor: "size", Value: strconv.Itoa(1 << i)}
		f.Levels = append(f.Levels, size.Value)
		s.Shared = append(slices.Clone(st.Strata[0].Shared[:1]), size)
		for k := range s.Cells {
			level, _ := s.Cells[k].Get("sandbox")
			s.Cells[k] = append(slices.Clone(s.Shared), record.Level{Factor: "sandbox", Value: level})
		}
		s.Key, s.Workload, s.Better = s.Shared.Key(), 0, record.Lower
	}
	st.Workloads, st.Factors = st.Workloads[:1], []study.Factor{f}
	st.Stop.Looks, st.Stop.Width, st.Stop.Tune = nil, 0, 0.9
	return st
}

// TestTuneSeeds: only the first stratum of a workload screens all levels. The others wait, and begin where the nearest one before
// them ended. All are found with fewer trials than if each had screened. Killed anywhere, it goes on as it would have.
func TestTuneSeeds(t *testing.T) {
	const strata, levels = 5, 17
	st := sizes(strata, levels)
	for seed := range uint64(2) {
		w := saturates(seed)
		whole := New(st, nil, nil)
		order, trials := play(t, whole, w)
		first, last := map[int]map[string]bool{}, map[int]int{}
		begun := map[int]int{}
		for k, n := range order {
			if _, is := begun[n.Stratum]; !is {
				begun[n.Stratum], first[n.Stratum] = n.Block, map[string]bool{}
				if end, is := last[n.Stratum-1]; n.Stratum > 0 && (!is || n.Block != end+1) {
					t.Errorf("seed %d: stratum %d begins in block %d, and the one before it ended in %d", seed, n.Stratum, n.Block, end)
				}
			}
			if n.Block == begun[n.Stratum] {
				level, _ := n.Cell.Get("sandbox")
				first[n.Stratum][level] = true
			}
			last[n.Stratum] = order[k].Block
		}
		for i := range strata {
			if step, _ := whole.Tuned(i); step.Stage != tune.Found || step.Answer != 4 {
				t.Errorf("seed %d: stratum %d: %s %d", seed, i, step.Stage, step.Answer)
			}
			e, _ := whole.Ending(i)
			if e.Code != EndFound || e.Blocks != last[i]-begun[i]+1 {
				t.Errorf("seed %d: stratum %d: %+v, blocks %d to %d", seed, i, e, begun[i], last[i])
			}
			if n := len(first[i]); i == 0 && (n != 6 || !first[i]["t16"]) || i > 0 && (n > 5 || !first[i]["t3"] || !first[i]["t4"] || !first[i]["t5"]) {
				t.Errorf("seed %d: stratum %d begins with %v", seed, i, first[i])
			}
		}
		limited := *st
		limited.Budget.Time = time.Hour
		alone, _ := play(t, New(&limited, nil, nil), w)
		if len(order) >= len(alone) {
			t.Errorf("seed %d: %d trials, %d if each screens", seed, len(order), len(alone))
		}
		r := rand.New(rand.NewPCG(seed, 3))
		for cut := 0; cut < len(order); cut += 1 + len(order)/5 {
			p := New(st, nil, nil)
			part := slices.Clone(trials[:cut])
			r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			for _, x := range part {
				p.Done(x)
			}
			if n, ok := p.Next(); !ok || n.Cell.Key() != order[cut].Cell.Key() || n.Block != order[cut].Block {
				t.Fatalf("seed %d: resumed after %d trials at %s of block %d, not %s of %d", seed, cut, n.Cell, n.Block, order[cut].Cell, order[cut].Block)
			}
			if r := p.Remaining(nil); r.AtLeast < 1 || r.AtMost < len(order)-cut {
				t.Errorf("seed %d: after %d of %d trials: %+v", seed, cut, len(order), r)
			}
		}
	}
}

// TestTuneTogether: strata begin together if the time is limited, on several nodes, and if they did before. Those that cannot run, or fail
// everywhere, hold up no other.
func TestTuneTogether(t *testing.T) {
	firstPass := func(p *Plan, w world) map[int]bool {
		order, _ := playOn(t, p, func(n Next) *record.Trial {
			x := w.trial(n)
			x.Node = n.Node
			return x
		})
		out := map[int]bool{}
		for _, n := range order {
			if n.Block == 1 {
				out[n.Stratum] = true
			}
		}
		return out
	}
	st, w := sizes(3, 17), saturates(1)
	limited := *st
	limited.Budget.Time = time.Hour
	old := New(&limited, nil, nil)
	_, trials := play(t, old, w)
	again := New(st, nil, nil)
	for _, x := range trials {
		again.Done(x)
	}
	if n, more := again.Next(); more {
		t.Errorf("what began together goes on with %s of block %d", n.Cell, n.Block)
	}
	few := sizes(3, 6) // the screen has them all
	words := sizes(3, 17)
	for i := range words.Strata {
		s := &words.Strata[i]
		s.Shared[1].Value = "mode" + s.Shared[1].Value
		s.Key, words.Factors[0].Levels[i] = s.Shared.Key(), s.Shared[1].Value
		for _, c := range s.Cells {
			c[1].Value = s.Shared[1].Value
		}
	}
	var skips []record.Skip
	for _, c := range st.Strata[0].Cells {
		skips = append(skips, record.Skip{Cell: c, Reason: "not here"})
	}
	for name, c := range map[string]struct {
		p    *Plan
		want int
	}{
		"one node": {New(st, nil, []string{"a"}), 1}, "two nodes": {New(st, nil, []string{"a", "b"}), 3}, "a budget": {New(&limited, nil, nil), 3},
		"few levels": {New(few, nil, nil), 3}, "the first cannot run": {New(st, skips, nil), 1}, "words": {New(words, nil, nil), 3},
	} {
		if got := firstPass(c.p, w); len(got) != c.want {
			t.Errorf("%s: strata %v have a block in the first pass, want %d", name, got, c.want)
		}
	}
	bad := w
	bad.always = func(n Next) bool { return n.Stratum == 1 }
	p := New(st, nil, nil)
	play(t, p, bad)
	for i, want := range []string{EndFound, EndGaveUp, EndFound} {
		if e, _ := p.Ending(i); e.Code != want {
			t.Errorf("stratum %d: %+v, want %s", i, e, want)
		}
	}
}

// TestTuneLargerBudget: a search that its budget ended goes on with a larger one. It keeps every trial, repeats none, and
// ends as if it had had the larger budget from the start.
func TestTuneLargerBudget(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		for _, small := range []time.Duration{10 * time.Second, 40 * time.Second, 90 * time.Second} {
			with := func(budget time.Duration) *study.Study {
				st := makeStudy(3, 12)
				st.Stop.Looks, st.Stop.Width, st.Stop.Tune, st.Budget.Time = nil, 0, 0.9, budget
				if mixed {
					st.Stop.Mix = map[string]float64{"w0": 1, "w2": 2}
				}
				for i := range st.Strata {
					st.Strata[i].Better = record.Lower
				}
				return st
			}
			w := saturates(2)
			p := New(with(small), nil, nil)
			_, trials := play(t, p, w)
			if e, _ := p.Ending(0); e.Code != EndBudgetTime || !strings.Contains(e.Text, "with a larger budget to continue") {
				t.Fatalf("%v: %+v", small, e)
			}
			made := map[string]bool{}
			key := func(n Next) string { return strconv.Itoa(n.Block) + " " + n.Cell.Key() }
			more := New(with(0), nil, nil)
			for _, x := range trials {
				made[key(Next{Block: x.Block, Cell: x.Cell})] = true
				more.Done(x)
			}
			order, _ := play(t, more, w)
			for _, n := range order {
				if made[key(n)] {
					t.Errorf("%v: %s of block %d is repeated", small, n.Cell, n.Block)
				}
				made[key(n)] = true
			}
			whole := New(with(0), nil, nil)
			want, _ := play(t, whole, w)
			if len(want) != len(made) {
				t.Errorf("%v, mixed %t: %d trials, %d in one go", small, mixed, len(made), len(want))
			}
			for _, n := range want {
				if !made[key(n)] {
					t.Errorf("%v: %s of block %d is missing", small, n.Cell, n.Block)
				}
			}
			for i := range 3 {
				a, _ := more.Tuned(i)
				b, _ := whole.Tuned(i)
				if a.Answer != b.Answer || a.Stage != b.Stage || a.Sure != b.Sure {
					t.Errorf("%v: %+v, in one go %+v", small, a, b)
				}
			}
		}
	}
}

// TestTuneSkipped: a level that cannot run is neither asked for nor the answer, and a level that fails
// is given up.
func TestTuneSkipped(t *testing.T) {
	st := makeStudy(1, 6)
	st.Stop.Looks, st.Stop.Width, st.Stop.Tune = nil, 0, 0.9
	st.Strata[0].Better = record.Lower
	cells := st.Strata[0].Cells
	w := saturates(1)
	w.always = func(n Next) bool { return n.Cell.Key() == cells[5].Key() }
	p := New(st, []record.Skip{{Cell: cells[4], Reason: "not here"}}, nil)
	order, _ := play(t, p, w)
	for _, n := range order {
		if n.Cell.Key() == cells[4].Key() {
			t.Fatalf("%+v is skipped", n)
		}
	}
	if step, _ := p.Tuned(0); step.Answer != 3 {
		t.Errorf("found %+v", step)
	}
	if p.GaveUp(cells[5]) == "" {
		t.Error("the level that fails is not given up")
	}
	// The first level is the baseline, and may fail like any other; all may.
	for failing, want := range map[string]string{"t0": EndFound, "": EndGaveUp} {
		w.always = func(n Next) bool { level, _ := n.Cell.Get("sandbox"); return failing == "" || level == failing }
		p = New(st, nil, nil)
		play(t, p, w)
		if e, _ := p.Ending(0); e.Code != want {
			t.Errorf("%q fails: %+v, want %s", failing, e, want)
		}
	}
}

// TestMix: two workloads with opposite wants have one level, which depends on their weights; a resumed study goes
// on as it would have, and a level that fails for one of them is the answer for none.
func TestMix(t *testing.T) {
	// The first gains until level 8, the second loses by each level, half as much.
	effect := func(n Next, k int) float64 {
		if w, _ := n.Cell.Get("workload"); w == "w0" {
			return -0.4 * float64(min(k, 8))
		}
		return 0.2 * float64(k)
	}
	for _, c := range []struct {
		weights map[string]float64
		failing string // level of the second workload
		lo, hi  int
	}{
		{map[string]float64{"w0": 1, "w1": 1}, "", 8, 8},
		{map[string]float64{"w0": 1, "w1": 3}, "", 0, 0},
		{map[string]float64{"w0": 1, "w1": 1}, "t8", 7, 7},
	} {
		st := makeStudy(3, 12)
		st.Stop.Looks, st.Stop.Width, st.Stop.Tune, st.Stop.Mix = nil, 0, 1, c.weights
		for i := range st.Strata {
			st.Strata[i].Better = record.Lower
		}
		w := world{seed: 3, noise: 0.01, always: func(n Next) bool {
			workload, _ := n.Cell.Get("workload")
			level, _ := n.Cell.Get("sandbox")
			return workload == "w1" && level == c.failing
		}}
		made := func(n Next) *record.Trial {
			level, _ := n.Cell.Get("sandbox")
			k, err := strconv.Atoi(strings.TrimPrefix(level, "t"))
			if err != nil {
				t.Fatal(err)
			}
			w.effect = func(string) float64 { return effect(n, k) }
			return w.trial(n)
		}
		p := New(st, nil, nil)
		var trials []*record.Trial
		measured := map[string]map[string]bool{}
		for n, ok := p.Next(); ok; n, ok = p.Next() {
			x := made(n)
			trials = append(trials, x)
			p.Done(x)
			workload, _ := n.Cell.Get("workload")
			level, _ := n.Cell.Get("sandbox")
			if measured[workload] == nil {
				measured[workload] = map[string]bool{}
			}
			measured[workload][level] = true
		}
		a, _ := p.Tuned(0)
		b, _ := p.Tuned(1)
		if a.Answer < c.lo || a.Answer > c.hi || a.Answer != b.Answer || a.Stage != tune.Found {
			t.Errorf("%v: level %d, %s (of the other %d), want %d to %d", c.weights, a.Answer, a.Stage, b.Answer, c.lo, c.hi)
		}
		if !maps.Equal(measured["w0"], measured["w1"]) {
			t.Errorf("%v: levels %v of one and %v of the other", c.weights, measured["w0"], measured["w1"])
		}
		if other, _ := p.Tuned(2); other.Answer != 0 {
			t.Errorf("outside of the mix: level %d", other.Answer)
		}
		if alone := p.Alone(0); alone.Best < 7 {
			t.Errorf("the first alone: the best is %d", alone.Best)
		}
		again := New(st, nil, nil)
		for _, x := range trials[:len(trials)/2] {
			again.Done(x)
		}
		if n, ok := again.Next(); !ok || n.Cell.Key() != trials[len(trials)/2].Cell.Key() {
			t.Errorf("%v: resumed at %s", c.weights, n.Cell)
		}
	}
}

// TestMixEnds: a mix one of which cannot run has no level, and the rest of it does not run on.
func TestMixEnds(t *testing.T) {
	st := makeStudy(2, 4)
	st.Stop.Looks, st.Stop.Width, st.Stop.Tune, st.Stop.Mix = nil, 0, 1, map[string]float64{"w0": 1, "w1": 1}
	var skips []record.Skip
	for _, c := range st.Strata[1].Cells {
		skips = append(skips, record.Skip{Cell: c, Reason: "not here"})
	}
	p := New(st, skips, nil)
	if n, ok := p.Next(); ok {
		t.Errorf("it runs %s", n.Cell)
	}
	if e, ok := p.Ending(0); !ok || e.Code != EndSkipped || !strings.Contains(e.Text, "of a workload of its mix: none of its cells can run here") {
		t.Errorf("%+v", e)
	}
}

// TestObjectiveOfALateGenerator: trials whose load generator did not send what was due do not meet the objective, whatever their
// latency. Those that miss it by the generator's own fault are counted apart; one that meets it although the generator was late does.
func TestObjectiveOfALateGenerator(t *testing.T) {
	st := makeStudy(1, 6)
	st.Stop.Looks, st.Stop.Width, st.Stop.Objective = nil, 0, &study.Objective{Response: "time", Limit: 5, Text: "time<5"}
	for k, c := range st.Strata[0].Cells {
		c[1].Value = strconv.Itoa(100 << k)
	}
	st.Baseline = "100"
	for name, c := range map[string]struct {
		unsent float64 // of 1000, at 800 and above
		warned bool
		answer int
		late   bool
	}{
		"the generator is late":          {400, true, 2, true},
		"the server is slow":             {400, false, 2, false},
		"nearly all was sent":            {9, true, 5, false},
		"late, but all was sent in time": {0, true, 5, false},
	} {
		w := world{seed: 1, noise: 0.01, effect: func(string) float64 { return 0 }}
		p := New(st, nil, nil)
		for n, ok := p.Next(); ok; n, ok = p.Next() {
			x := w.trial(n)
			level, _ := n.Cell.Get("sandbox")
			if load, _ := strconv.Atoi(level); load >= 800 {
				x.Samples = append(x.Samples, record.NewValue(record.SampleDue, record.Count, 1000, "end", "client"), record.NewValue(record.SampleUnsent, record.Count, c.unsent, "end", "client"))
				if c.warned {
					x.Warnings = []record.Warning{{Code: record.GeneratorLate, Text: "it is late"}}
				}
			}
			p.Done(x)
		}
		step, _ := p.Tuned(0)
		late := step.Upper >= 0 && step.Levels[step.Upper].Late == step.Levels[step.Upper].Missed
		if step.Stage != tune.Found || step.Answer != c.answer || late != c.late {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestObjective: the highest load that meets an objective is found in few trials, each of its bounds by fresh trials; a load
// at which trials fail misses the objective. Resumed, the study goes on as it would have.
func TestObjective(t *testing.T) {
	const levels = 30
	st := makeStudy(2, levels)
	st.Stop.Looks, st.Stop.Width, st.Stop.Objective = nil, 0, &study.Objective{Response: "time", Limit: 5, Text: "time<5"}
	load := func(k int) float64 { return math.Round(100 * math.Pow(1.15, float64(k))) }
	for i := range st.Strata {
		for k, c := range st.Strata[i].Cells {
			c[1].Value = strconv.FormatFloat(load(k), 'f', -1, 64)
		}
	}
	st.Baseline = "100"
	at := func(level string) float64 {
		x, err := strconv.ParseFloat(level, 64)
		if err != nil {
			panic(err)
		}
		return x
	}
	const capacity = 2000 // of a queue, which meets the objective up to four fifths of it
	overload := func(n Next) bool { level, _ := n.Cell.Get("sandbox"); return at(level) > capacity }
	for seed := range uint64(4) {
		w := world{seed: seed, noise: 0.1, always: overload, effect: func(level string) float64 {
			return -math.Log(max(1-at(level)/capacity, 1e-3))
		}}
		whole := New(st, nil, nil)
		order, trials := play(t, whole, w)
		for i := range st.Strata {
			step, ok := whole.Tuned(i)
			if !ok || step.Stage != tune.Found || step.Upper != step.Answer+1 || load(step.Answer-1) > 0.8*capacity || load(step.Upper+1) < 0.8*capacity {
				t.Errorf("seed %d: %s, from %v to %v", seed, step.Stage, load(max(step.Answer, 0)), load(max(step.Upper, 0)))
			}
			if e, _ := whole.Ending(i); e.Code != EndFound || !strings.HasPrefix(e.Text, "the highest load is found") {
				t.Errorf("seed %d: %+v", seed, e)
			}
		}
		if len(order) > 2*60 {
			t.Errorf("seed %d: %d trials", seed, len(order))
		}
		for _, cut := range []int{5, len(order) / 2, len(order) - 1} {
			again := New(st, nil, nil)
			for _, x := range trials[:cut] {
				again.Done(x)
			}
			if n, ok := again.Next(); !ok || n.Cell.Key() != order[cut].Cell.Key() || n.Block != order[cut].Block {
				t.Errorf("seed %d: resumed at %s", seed, n.Cell)
			}
		}
	}
	// Where every trial fails, no load meets it.
	p := New(st, nil, nil)
	play(t, p, world{always: func(Next) bool { return true }})
	if e, _ := p.Ending(0); e.Code != EndFound || !strings.HasPrefix(e.Text, "no load meets the objective") {
		t.Errorf("all fail: %+v", e)
	}
	if step, _ := p.Tuned(0); step.Answer != -1 {
		t.Errorf("all fail: %+v", step)
	}
}

// TestTuneReason: where searches end in several ways, the reason says how many did in which, with the lowest confidence.
func TestTuneReason(t *testing.T) {
	st := makeStudy(3, 6)
	st.Stop.Looks, st.Stop.Width, st.Stop.Objective = nil, 0, &study.Objective{Response: "time", Limit: 5, Text: "time<5"}
	for i := range st.Strata {
		for k, c := range st.Strata[i].Cells {
			c[1].Value = strconv.Itoa(100 * (k + 1))
		}
	}
	st.Baseline = "100"
	p := New(st, nil, nil)
	play(t, p, world{noise: 0.1, effect: func(string) float64 { return 0 }, always: func(n Next) bool {
		level, _ := n.Cell.Get("sandbox")
		workload, _ := n.Cell.Get("workload")
		return workload != "w0" && level > "300"
	}})
	for i, sure := range []float64{0.97, 0.99, 0.96} {
		p.strata[i].found.Sure = sure
	}
	want := "2 of 3 workload variants: the highest load is found, with a confidence of 96 % or more; 1 of 3 workload variants: every load meets the objective, with a confidence of 97 %"
	if got := p.Reason(); got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
	st.Strata = st.Strata[1:2]
	p = New(st, nil, nil)
	play(t, p, world{noise: 0.1, effect: func(string) float64 { return 0 }, always: func(n Next) bool { level, _ := n.Cell.Get("sandbox"); return level > "300" }})
	p.strata[0].found.Sure = 1
	if got := p.Reason(); got != "the highest load is found, with a confidence of 99 %" {
		t.Errorf("the reason is %q", got)
	}
}
