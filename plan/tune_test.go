package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/analyse/tune"
	"tare/record"
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
