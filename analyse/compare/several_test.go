package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/record"
)

// TestSeveralByHand: the mean of each side's results, and Student's t of how they differ
// within a side. A result that does not have the row gives nothing to it.
func TestSeveralByHand(t *testing.T) {
	sc := scenery{noise: 0.02, second: 1, strata: 2, treats: 1, fixed: [2]int{4, 4}, day: 0.1}
	r := rand.New(rand.NewPCG(3, 4))
	tr := sc.truth(r, true)
	var sides [2][]Folder
	for i, n := range []int{2, 3} {
		for k := range n {
			st := makeStudy(sc.strata, sc.treats)
			st.Stop.Fixed = 4
			sides[i] = append(sides[i], Folder{Name: fmt.Sprintf("%c%d", 'A'+i, k), Study: st, Trials: sc.measure(r, tr, st, i == 1)})
		}
	}
	last := &sides[1][2]
	last.Study.Strata, last.Trials = last.Study.Strata[:1], slices.DeleteFunc(last.Trials, func(x record.Trial) bool { return strings.HasPrefix(x.Cell.Key(), "workload=w2") })
	res, err := Compare(sides[0], sides[1], Options{Describe: describe, Question: Cost})
	if err != nil {
		t.Fatal(err)
	}
	for i, results := range [][2]int{{2, 3}, {2, 2}} {
		cell := fmt.Sprintf("workload=w%d,sandbox=", i+1)
		means, squares := [2]float64{}, 0.0
		for j, side := range sides {
			var v []float64
			for _, f := range side[:results[j]] {
				l, sum := logs(f.Trials), 0.0
				for b, x := range l[cell+"box1"] {
					sum += (x - l[cell+"process"][b]) / 4
				}
				v = append(v, sum)
			}
			for _, x := range v {
				means[j] += x / float64(len(v))
			}
			for _, x := range v {
				squares += sq(x - means[j])
			}
		}
		df := float64(results[0] + results[1] - 2)
		se := math.Sqrt(squares / df * (1/float64(results[0]) + 1/float64(results[1])))
		c := res.Rows[i].Cost
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(0.975) * se
		if d := means[1] - means[0]; math.Abs(math.Log(c.Ratio)-d) > 1e-12 || math.Abs(c.SE-se) > 1e-12 || c.DF != df || math.Abs(math.Log(c.Hi)-d-half) > 1e-9 {
			t.Errorf("%s: %+v, want ratio %g, se %g, df %g", cell, c, math.Exp(d), se, df)
		}
		if a, b := res.Rows[i].A, res.Rows[i].B; a.Results != results[0] || b.Results != results[1] || a.N != 4*results[0] || math.Abs(b.Cost.Ratio-math.Exp(means[1])) > 1e-12 {
			t.Errorf("%s: %+v, %+v", cell, a, b)
		}
	}
	if w := strings.Join(res.Warnings, "\n"); strings.Contains(w, "one result") || res.B.Name != "B0, B1, B2" || len(res.B.Results) != 3 {
		t.Errorf("%+v: %s", res.B, w)
	}
	one, err := Compare(sides[0][:1], sides[1][:1], Options{Describe: describe})
	if err != nil || !strings.Contains(strings.Join(one.Warnings, "\n"), "cannot tell an upgrade from a different day") || one.A.Results != nil {
		t.Errorf("one a side: %v, %v", one.Warnings, err)
	}
}

// days plays pairs of sides with so many results each, every one on a day of its own,
// and returns the coverage of costs and the power for 10 %.
func days(t *testing.T, sc *scenery, results [2]int, pairs int, seed uint64) (missed, found rate, width float64) {
	r := rand.New(rand.NewPCG(seed, uint64(10*results[0]+results[1])))
	widths := 0.0
	for i := range pairs {
		tr := sc.truth(r, i%2 == 1)
		var sides [2][]Folder
		for j := range sides {
			for k := range results[j] {
				st := makeStudy(sc.strata, sc.treats)
				st.Stop.Fixed = sc.fixed[j]
				sides[j] = append(sides[j], Folder{Name: fmt.Sprintf("%c%d", 'A'+j, k), Study: st, Trials: sc.measure(r, tr, st, j == 1)})
			}
		}
		res, err := Compare(sides[0], sides[1], Options{Describe: describe, Question: Cost})
		if err != nil {
			t.Fatal(err)
		}
		var miss, tens, hits int
		for i := range res.Rows {
			row := &res.Rows[i]
			w, _ := strconv.Atoi(strings.TrimPrefix(row.Workload, "w"))
			box, _ := row.Cell.Get("sandbox")
			k, _ := strconv.Atoi(strings.TrimPrefix(box, "box"))
			want, c := tr.change[w-1][k], row.Cost
			miss += count(want < math.Log(c.Lo) || want > math.Log(c.Hi))
			widths += math.Log(c.Hi/c.Lo) / 2 / float64(len(res.Rows)) / float64(pairs)
			if math.Abs(want-math.Log(1.1)) < 1e-9 {
				tens++
				hits += count(*c.P < 0.05)
			}
		}
		missed.add(miss, len(res.Rows))
		found.add(hits, tens)
	}
	return missed, found, widths
}

// TestSimulatedDays: with two results a side or more, intervals cover whatever the days
// do to the costs, to each row by itself or to all alike. With one they do not, which
// is why the comparison says so. TARE_SIMULATE=300 prints the table of the docs.
func TestSimulatedDays(t *testing.T) {
	pairs := 10
	if s := os.Getenv("TARE_SIMULATE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		pairs = n
	}
	base := scenery{noise: 0.096 / math.Sqrt2, spread: math.Sqrt(3.7) / 2, second: 1, strata: 10, treats: 2, fixed: [2]int{6, 6}}
	for _, day := range []struct {
		name        string
		day, common float64
	}{{"no effect of the day", 0, 0}, {"5 %, each row by itself", 0.05, 0}, {"15 %, each row by itself", 0.15, 0}, {"5 %, half of it common", 0.05, 0.5}, {"5 %, common to all rows", 0.05, 1}} {
		t.Run(day.name, func(t *testing.T) {
			t.Parallel()
			sc := base
			sc.day, sc.common = day.day, day.common
			line := "| " + day.name
			for _, k := range [][2]int{{1, 1}, {1, 3}, {2, 2}, {3, 3}, {5, 5}} {
				missed, found, width := days(t, &sc, k, pairs, 20261122)
				line += fmt.Sprintf(" | %.1f (%.1f, %s)", 100-100*missed.share(), 100*width, &found)
				if k[0]+k[1] > 2 {
					atMost(t, fmt.Sprintf("%v results: intervals miss the truth", k), &missed, 0.06)
				}
			}
			t.Log(line + " |")
		})
	}
}

// TestSameDay: several results of one day tell nothing of days, and the comparison says so.
func TestSameDay(t *testing.T) {
	start := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		at   [4]time.Duration // when two results of A and two of B began
		want []string
	}{
		{"seconds", [4]time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, []string{"2 results of A began within 0.01 hours", "2 results of B began within 0.01 hours"}},
		{"B within hours", [4]time.Duration{0, 24 * time.Hour, 48 * time.Hour, 51 * time.Hour}, []string{"2 results of B began within 3 hours"}},
		{"days", [4]time.Duration{0, 24 * time.Hour, 48 * time.Hour, 72 * time.Hour}, nil},
		{"not known", [4]time.Duration{-1, -1, -1, -1}, []string{"not known when each of the 2 results of A began", "not known when each of the 2 results of B began"}},
	} {
		sc := scenery{noise: 0.02, second: 1, strata: 2, treats: 1, fixed: [2]int{4, 4}}
		r := rand.New(rand.NewPCG(3, 4))
		tr := sc.truth(r, true)
		var sides [2][]Folder
		for k, at := range c.at {
			st := makeStudy(sc.strata, sc.treats)
			st.Stop.Fixed = 4
			f := Folder{Name: fmt.Sprint(k), Study: st, Trials: sc.measure(r, tr, st, k > 1)}
			for i := range f.Trials {
				f.Trials[i].Start = time.Time{}
				if at >= 0 {
					f.Trials[i].Start = start.Add(at + time.Duration(i)*time.Millisecond)
				}
			}
			sides[k/2] = append(sides[k/2], f)
		}
		res, err := Compare(sides[0], sides[1], Options{Describe: describe, Question: Cost})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range res.Warnings {
			if strings.Contains(w, "began") {
				got = append(got, w)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.name, got[i], c.want[i])
			}
		}
		if want := map[bool]int{true: 0, false: 2 - len(c.want)/2}[c.at[0] < 0]; c.name != "B within hours" && res.A.Days != want {
			t.Errorf("%s: A has %d days, want %d", c.name, res.A.Days, want)
		}
	}
}
