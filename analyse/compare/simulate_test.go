package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/analyse/stat"
)

// `go test ./analyse/compare` plays some pairs of studies of each scenery and
// fails for what chance does not explain. TARE_SIMULATE=1000 plays so many, and
// prints the table of docs/method.md.

// rate is a share counted over pairs of studies, whose rows share a machine.
type rate struct{ hits, of []float64 }

func (c *rate) add(hits, of int) {
	if of > 0 {
		c.hits, c.of = append(c.hits, float64(hits)), append(c.of, float64(of))
	}
}

func (c *rate) share() float64 {
	var h, n float64
	for i := range c.of {
		h, n = h+c.hits[i], n+c.of[i]
	}
	return h / n
}

// error4 is four standard errors of the share if the true one is p.
func (c *rate) error4(p float64) float64 {
	var v, n float64
	s := c.share()
	for i := range c.of {
		n += c.of[i]
		v += sq(c.hits[i] - s*c.of[i])
	}
	return 4 * max(math.Sqrt(v)/n, math.Sqrt(p*(1-p)/n))
}

func (c *rate) String() string {
	if len(c.of) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*c.share())
}

// score is what came of one question.
type score struct{ missed, called, naive, discovery, any, found rate }

func (s *score) note(rows []Row, pick func(*Row) *Change, truth func(*Row) float64, same bool) {
	var n, missed, nulls, called, naive, changed, wrong, effects, found int
	for i := range rows {
		c := pick(&rows[i])
		if c == nil {
			continue
		}
		want := truth(&rows[i])
		n++
		if want < math.Log(c.Lo)-1e-12 || want > math.Log(c.Hi)+1e-12 {
			missed++
		}
		if c.Changed {
			changed++
		}
		different := c.Verdict == stat.Slower || c.Verdict == stat.Faster
		if want == 0 {
			nulls++
			if different {
				called++
			}
			if 2*(distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.DF}).Survival(math.Abs(math.Log(c.Ratio))/c.SE) < 0.05 {
				naive++
			}
			if c.Changed {
				wrong++
			}
			continue
		}
		if math.Abs(want-math.Log(1.1)) < 1e-9 {
			effects++
			if c.Changed && c.Verdict == stat.Slower {
				found++
			}
		}
	}
	s.missed.add(missed, n)
	s.found.add(found, effects)
	if nulls == 0 {
		return
	}
	s.called.add(called, nulls)
	s.naive.add(naive, nulls)
	share := float64(wrong) / float64(max(changed, 1))
	to := &s.discovery
	if same {
		to = &s.any
	}
	to.hits, to.of = append(to.hits, share), append(to.of, 1)
}

func simulate(t *testing.T, sc *scenery, pairs int, seed uint64) (cost, level score) {
	r := rand.New(rand.NewPCG(seed, uint64(len(sc.name))))
	for i := range pairs {
		same := i%2 == 1
		tr := sc.truth(r, same)
		var sides [2]Side
		for j := range sides {
			st := makeStudy(sc.strata, sc.treats)
			st.Seed, st.Stop.Fixed = r.Uint64(), sc.fixed[j]
			sides[j] = Side{Name: string(rune('A' + j)), Study: st, Trials: sc.measure(r, tr, st, j == 1)}
		}
		res, err := Compare(sides[0], sides[1], Options{Describe: describe})
		if err != nil {
			t.Fatal(err)
		}
		change := func(row *Row) float64 {
			w, _ := strconv.Atoi(strings.TrimPrefix(row.Workload, "w"))
			box, _ := row.Cell.Get("sandbox")
			k, _ := strconv.Atoi(strings.TrimPrefix(box, "box"))
			return tr.change[w-1][k]
		}
		cost.note(res.Rows, func(r *Row) *Change { return r.Cost }, change, same)
		// What the sessions differ in is part of a level: a row that does not move
		// by itself is called changed wrongly all the same.
		level.note(res.Rows, func(r *Row) *Change { return r.Level }, change, same)
	}
	return cost, level
}

func atMost(t *testing.T, what string, c *rate, p float64) {
	t.Helper()
	if len(c.of) > 0 && c.share() > p+c.error4(p) {
		t.Errorf("%s: %s %%, want at most %.3g %% (chance reaches %.1f %%)", what, c, 100*p, 100*(p+c.error4(p)))
	}
}

// TestSimulatedComparisons holds the promises of the method, with both studies
// stopped by their own rule: intervals cover the true change in 93 % or more, what
// did not change is called different in 5 % at most, and of what is called
// changed 5 % at most did not.
func TestSimulatedComparisons(t *testing.T) {
	pairs, seed, long := 12, uint64(20261120), false
	if s := os.Getenv("TARE_SIMULATE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 {
			t.Fatalf("TARE_SIMULATE is the number of pairs of studies in each row, from 2; not %q", s)
		}
		pairs, long = n, true
	}
	if s := os.Getenv("TARE_SIMULATE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("TARE_SIMULATE_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("seed %d, %d pairs of studies of each scenery", seed, pairs)
	all := sceneries()
	rows := make([]string, len(all))
	t.Run("sceneries", func(t *testing.T) {
		for i := range all {
			sc := &all[i]
			t.Run(sc.name, func(t *testing.T) {
				t.Parallel()
				n := pairs
				if sc.strata == 1 {
					n *= 4
				}
				cost, level := simulate(t, sc, n, seed)
				covered := func(c rate) string { return fmt.Sprintf("%.1f", 100-100*c.share()) }
				rows[i] = fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |", sc.name, covered(cost.missed), &cost.called, &cost.naive,
					&cost.discovery, &cost.any, &cost.found, covered(level.missed), &level.called, &level.any)
				t.Logf("%d pairs: %s", n, rows[i])
				check := func(what string, s *score) {
					atMost(t, what+": intervals miss the truth", &s.missed, 0.07)
					atMost(t, what+": the same is called different", &s.called, 0.05)
					atMost(t, what+": false discoveries beside true ones", &s.discovery, 0.05)
					atMost(t, what+": discoveries where nothing changed", &s.any, 0.05)
				}
				check("cost", &cost)
				if !sc.breaks {
					check("level", &level)
				}
			})
		}
	})
	if long {
		fmt.Printf("%s\n\n", strings.Join(rows, "\n"))
	}
}
