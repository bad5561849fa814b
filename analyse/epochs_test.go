package analyse

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/plan"
	"tare/record"
	"tare/study"
)

const stepSeq = 120

// watchedStudy has a sentinel after every second block.
func watchedStudy() *study.Study {
	st := makeStudy()
	st.Stop.Fixed = 24
	st.Sentinel = &study.Sentinel{
		Cell:     record.Cell{{Factor: "workload", Value: study.SentinelLabel}, {Factor: "sandbox", Value: "process"}},
		Workload: study.Workload{Label: study.SentinelLabel, Kind: "syscall", Responses: []string{"time"}}, Every: 2,
	}
	return st
}

// onStep is a machine that is slower by a factor from a trial on; treatments may
// feel it more.
func onStep(by, more float64) func(plan.Next) record.Trial {
	return func(n plan.Next) record.Trial {
		t := outcome(n)
		t.Start = time.Unix(1_700_000_000+int64(n.Seq), 0).UTC()
		if n.Sentinel {
			r := rand.New(rand.NewPCG(uint64(n.Block), uint64(n.Attempt)))
			t.Duration = 100 * time.Millisecond
			t.Samples = append(t.Samples, record.Sample{Name: "time", Unit: record.Second, Value: 1e-6 * math.Exp(0.01*r.NormFloat64())},
				record.Sample{Name: plan.WaitSample, Unit: record.Fraction, Value: 0.01})
		}
		if n.Seq < stepSeq {
			return t
		}
		box, _ := n.Cell.Get("sandbox")
		for i := range t.Samples {
			if s := &t.Samples[i]; s.Labels == "" && s.Name != plan.WaitSample {
				s.Value *= by
				if box != "process" {
					s.Value *= more
				}
			}
		}
		return t
	}
}

func TestEpochs(t *testing.T) {
	st := watchedStudy()
	trials := play(st, nil, onStep(1.2, 1))
	r := Analyse(st, trials, nil, Describe(describe))
	if r.Sentinel == nil || len(r.Epochs) != 2 {
		t.Fatalf("%+v %+v", r.Sentinel, r.Epochs)
	}
	e := r.Epochs[1]
	if e.After >= stepSeq || e.Seq < stepSeq || math.Abs(e.Ratio-1.2) > 0.02 || r.Epochs[0].Seq != 1 || !slices.Equal(e.What, []string{plan.ChangedTime}) {
		t.Errorf("%+v", e)
	}
	var points, again int
	var spent, all time.Duration
	for _, x := range trials {
		all += x.Duration
		if x.Cell.Key() == st.Sentinel.Cell.Key() {
			p := r.Sentinel.Points[points]
			want := SentinelPoint{Seq: x.Seq, Start: x.Start, Value: must(x.Sample("time")), Wait: 0.01, Epoch: 1}
			if x.Seq >= e.Seq {
				want.Epoch = 2
			}
			if d := cmp.Diff(want, p); d != "" {
				t.Error(d)
			}
			points++
			spent += x.Duration
		} else if x.Attempt > 1 {
			again++
		}
	}
	if points != len(r.Sentinel.Points) || r.Sentinel.Time != spent || math.Abs(r.Sentinel.Share-float64(spent)/float64(all)) > 1e-12 {
		t.Errorf("%d points: %+v", points, r.Sentinel)
	}
	if r.Sentinel.Again != 2 || again != 2*len(boxes) || len(e.Blocks) != 2 {
		t.Errorf("%d blocks and %d trials again: %+v", r.Sentinel.Again, again, e.Blocks)
	}
	if s := r.Sentinel.Scatter; s < 0.005 || s > 0.02 {
		t.Errorf("scatter %g", s)
	}
	if r.Failed != 0 || !r.Finished || len(r.Warnings) != 1 || r.Warnings[0].Code != "steady" {
		t.Errorf("%d failed, %+v", r.Failed, r.Warnings)
	}
	// The sentinel is compared with nothing and is nobody's overhead.
	base := find(t, r, "noop", "process", "time")
	if base.Level.N != 24 || len(r.Treatments) != 3 {
		t.Errorf("%+v", base.Level)
	}
	for _, o := range r.Overheads {
		if o.Sandbox == "process" && o.Trials >= 3*24+len(r.Sentinel.Points) {
			t.Errorf("%+v", o)
		}
	}
	// Trials in any order, and JSON, give the same.
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	a, err1 := json.Marshal(r)
	b, err2 := json.Marshal(Analyse(st, trials, nil, Describe(describe)))
	if err1 != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("shuffled trials give another result (%v, %v)", err1, err2)
	}
	if !strings.Contains(string(a), `"epochs":[{"seq":1,`) {
		t.Error("no epochs in the JSON")
	}
}

// TestOnlyTheLastRoundCounts: values of the first round of a block that ran again
// are in no ratio.
func TestOnlyTheLastRoundCounts(t *testing.T) {
	st := watchedStudy()
	trials := play(st, nil, onStep(1.2, 1))
	want := Analyse(st, trials, nil)
	last := map[string]int{}
	for _, x := range trials {
		if k := x.Cell.Key(); k != st.Sentinel.Cell.Key() {
			last[k+" "+string(rune(x.Block))] = max(last[k+" "+string(rune(x.Block))], x.Attempt)
		}
	}
	spoilt := 0
	for i := range trials {
		x := &trials[i]
		if x.Cell.Key() == st.Sentinel.Cell.Key() || x.Attempt == last[x.Cell.Key()+" "+string(rune(x.Block))] {
			continue
		}
		spoilt++
		x.Samples = slices.Clone(x.Samples)
		for j := range x.Samples {
			if x.Samples[j].Labels == "" {
				x.Samples[j].Value *= 100
			}
		}
	}
	if spoilt != 2*len(boxes) {
		t.Fatalf("%d trials do not count", spoilt)
	}
	if d := cmp.Diff(want.Compared, Analyse(st, trials, nil).Compared); d != "" {
		t.Error(d)
	}
}

// TestRatioOfEpochs: a warning where treatments feel the change more, and none
// where both sides do alike.
func TestRatioOfEpochs(t *testing.T) {
	for _, c := range []struct {
		more float64
		want bool
	}{{1, false}, {1.3, true}} {
		st := watchedStudy()
		r := Analyse(st, play(st, nil, onStep(1.2, c.more)), nil, Describe(describe))
		i := slices.IndexFunc(r.Warnings, func(w Warning) bool { return w.Code == "epoch-ratio" })
		if (i >= 0) != c.want {
			t.Errorf("treatments feel it %g times as much: %+v", c.more, r.Warnings)
		}
		if i >= 0 && (!strings.Contains(r.Warnings[i].Text, "8 of 8 comparisons") || len(r.Warnings[i].Cells) != 6) {
			t.Errorf("%+v", r.Warnings[i])
		}
	}
}

// TestWithoutSentinel: a study that was begun without one, and one whose host
// cannot run it.
func TestWithoutSentinel(t *testing.T) {
	st := watchedStudy()
	old := *st
	old.Sentinel = nil
	trials := play(&old, nil, outcome)
	r := Analyse(st, trials, nil)
	if r.Sentinel != nil || r.Epochs != nil || !r.Finished {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff(Analyse(&old, trials, nil), r); d != "" {
		t.Error(d)
	}
	skip := []record.Skip{{Cell: st.Sentinel.Cell, Reason: "needs root"}}
	r = Analyse(st, trials, skip)
	if r.Sentinel == nil || r.Sentinel.Skipped != "needs root" || len(r.Sentinel.Points) != 0 || !r.Finished {
		t.Errorf("%+v", r.Sentinel)
	}
}

func must(v float64, _ bool) float64 { return v }

// TestBusyMachine: load that is always there makes no epoch, and is said all the
// same.
func TestBusyMachine(t *testing.T) {
	for _, c := range []struct {
		calm, busy float64 // waits, in turn
		want       string
	}{
		{0.01, 0.03, ""},
		{0.5, 0.98, "the machine was busy throughout"},
		{0.01, 1, "the machine was busy most of the time"},
	} {
		st := watchedStudy()
		n := 0
		trials := play(st, nil, func(next plan.Next) record.Trial {
			x := onStep(1, 1)(next)
			if next.Sentinel {
				n++
				for i := range x.Samples {
					if x.Samples[i].Name == plan.WaitSample {
						if x.Samples[i].Value = c.busy; n%3 == 0 {
							x.Samples[i].Value = c.calm
						}
					}
				}
			}
			return x
		})
		r := Analyse(st, trials, nil, Describe(describe))
		if len(r.Epochs) > 1 || r.Sentinel == nil || r.Sentinel.Wait != c.busy { // two of three are busy
			t.Fatalf("%+v: %d epochs, %+v", c, len(r.Epochs), r.Sentinel)
		}
		i := slices.IndexFunc(r.Warnings, func(w Warning) bool { return w.Code == WarnBusy })
		if (i >= 0) != (c.want != "") || i >= 0 && !strings.Contains(r.Warnings[i].Text, c.want) {
			t.Errorf("waits of %g and %g: %+v, want %q", c.calm, c.busy, r.Warnings, c.want)
		}
	}
}
