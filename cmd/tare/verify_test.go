package main

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/store"
	"tare/study"
)

// near is an estimate from n blocks with an interval of this half-width, as a factor.
func near(ratio, half float64, n int) *stat.Estimate {
	e := &stat.Estimate{N: n, Ratio: ratio, Lo: ratio / half, Hi: ratio * half, SE: math.Log(half) / 4.3}
	if n < stat.MinN {
		e.Lo, e.Hi = 0, 0
	}
	return e
}

// TestConfirmed: a cause is confirmed where the cell gets faster and, if the cause is of a
// cost, where the cost gets smaller.
func TestConfirmed(t *testing.T) {
	for _, c := range []struct {
		name    string
		gain    *stat.Estimate
		cost    *relievedCost
		outcome string
		why     string
	}{
		{"a level", near(3, 1.5, 3), nil, outcomeConfirmed, ""},
		{"a cost that goes", near(3, 1.2, 3), &relievedCost{0.3, 0.9, near(3, 1.3, 3)}, outcomeConfirmed, ""},
		{"the baseline too", near(3, 1.2, 3), &relievedCost{0.27, 0.30, near(1.1, 1.2, 3)}, outcomeNot, "less than half of the cost"},
		{"the baseline more so", near(3, 1.2, 3), &relievedCost{0.68, 0.48, near(0.7, 1.1, 3)}, outcomeNot, "its baseline more so"},
		{"a little of the cost", near(1.64, 1.1, 3), &relievedCost{0.27, 0.30, near(1.12, 1.05, 3)}, outcomeNot, "less than half of the cost"},
		{"another treatment", near(1.57, 1.1, 3), &relievedCost{107, 68, near(1.57, 1.1, 3)}, outcomeNot, "keeps more than half"},
		{"the cost not clear", near(3, 1.2, 3), &relievedCost{0.3, 0.9, near(3, 4, 3)}, outcomeUndecided, "--blocks 6"},
		{"not clear", near(3.12, 3.6, 3), nil, outcomeUndecided, "interval includes 1); run more blocks: --blocks 6"},
		{"worse", near(0.5, 1.2, 3), nil, outcomeNot, "gets worse"},
		{"too few", near(2, 1.2, 2), nil, outcomeUndecided, "larger --budget"},
		{"no cost known", near(2, 1.2, 3), &relievedCost{0.3, 0.9, near(2, 1.2, 2)}, outcomeUndecided, "larger --budget"},
	} {
		v := verification{Gain: c.gain, Cost: c.cost, costs: c.cost != nil, elsewhere: c.name == "another treatment"}
		v.decide(0.95)
		if v.Outcome != c.outcome || !strings.Contains(v.Why, c.why) || (c.why == "") != (v.Why == "") {
			t.Errorf("%s: %s, %q", c.name, v.Outcome, v.Why)
		}
	}
}

// TestRelief: more I/O threads relieve the one that is full, but for a disk that the study compares with an encrypted one.
func TestRelief(t *testing.T) {
	from, to := record.Cell{{Factor: "io_threads", Value: "1"}}, record.Cell{{Factor: "io_threads", Value: "4"}}
	cell := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: "vm"}, {Factor: "disk", Value: "luks"}, from[0]}
	for compare, want := range map[string]string{"disk": "disk=raw", "sandbox": "io_threads=4"} {
		r := &analysed{result: &analyse.Result{}, content: content{kept: kept{study: &study.Study{Compare: compare}}}}
		x := advice.Item{Cause: string(cause.Helper), Cells: []record.Cell{cell}, Targets: []advice.Target{{From: from, To: to, Cells: []record.Cell{cell}}}}
		if v, ok := relieved(r, &x); !ok || len(v.Relief) != 1 || v.Relief[0].Factor+"="+v.Relief[0].Value != want {
			t.Errorf("compared by %s: relieved by %v, want %s", compare, v.Relief, want)
		}
	}
}

// TestOwnFolder: a verification goes on in its own folder, and with other overrides in a new one.
func TestOwnFolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r-verify")
	sets := func(blocks string) []string { return []string{"sandbox=process", "stop.fixed=" + blocks} }
	for i, c := range []struct{ blocks, data, want string }{
		{"3", "", name}, {"3", "", name}, {"8", "", name + "-2"}, {"5", "", name + "-3"}, {"8", "", name + "-2"}, {"3", "", name},
		{"3", "/a b", name + "-4"}, {"3", "/a b", name + "-4"}, {"3", "", name},
	} {
		got := ownFolder(name, sets(c.blocks), c.data)
		if got != c.want {
			t.Errorf("%d: %s blocks with data in %q go to %s, want %s", i, c.blocks, c.data, got, c.want)
		}
		if !store.Exists(got) {
			db, err := store.Create(got, store.Meta{StudySource: []byte("study: x\n"), StudyFile: "x.yaml", Overrides: sets(c.blocks), Flags: dataAt(c.data), TareVersion: "1", Started: time.Unix(1, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestVerifyData: a verification has its files where the results had them, unless --data says otherwise.
func TestVerifyData(t *testing.T) {
	for _, c := range []struct{ flags, asked, want string }{
		{"", "", ""}, {"--data '/b c'", "", "/b c"}, {"--data /a", "/d", "/d"}, {"--on model", "", ""}, {"--on k8s --tare-image x", "", ""},
	} {
		r := &analysed{result: &analyse.Result{Flags: c.flags}}
		if got, err := r.data(c.asked); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// TestVerifyUsage: what is wrong with the flags is a usage error, not a host that cannot.
func TestVerifyUsage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	eight(t, dir, 0)
	for _, args := range [][]string{{"--verify", "--budget", "-1m"}, {"--verify", "--blocks", "2"}, {"--blocks", "5"}, {"--budget", "5m"}, {"--data", "/tmp"}} {
		var out, errs bytes.Buffer
		if code := execute(t.Context(), &out, &errs, append([]string{"advise", dir}, args...)); code != exitUsage || strings.Contains(errs.String()+out.String(), "cannot be relieved") {
			t.Errorf("%v: exit %d\n%s%s", args, code, &out, &errs)
		}
	}
}

// TestCostOfRelief: costs are taken within blocks, with the baseline that has the relief too.
func TestCostOfRelief(t *testing.T) {
	was := difference(map[int]float64{1: math.Log(3), 2: math.Log(4), 3: 0}, map[int]float64{1: math.Log(10), 2: math.Log(10)})
	if g := geoMean(was); len(was) != 2 || math.Abs(g-math.Sqrt(0.12)) > 1e-12 {
		t.Errorf("%v, %g", was, g)
	}
	if !includes(record.Cell{{Factor: "a", Value: "1"}}, record.Cell{{Factor: "a", Value: "1"}}) {
		t.Error("a cell includes itself")
	}
}
