package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// watchful is what came of studies with a sentinel.
type watchful struct {
	score
	epochs rate // studies that saw a change
	again  float64
	width  float64 // ln of the intervals' half-widths, added up
	number float64
}

// playWatched follows a plan to its end on the machine, with the sentinel if the
// study has one. A trial takes a second, the sentinel 0.3.
func (m *machine) playWatched(st *study.Study, s *watchful) {
	p := New(st, nil, nil)
	treatment := make(map[string]int)
	for _, c := range st.Strata {
		for k, cell := range c.Cells {
			treatment[cell.Key()] = k
		}
	}
	for {
		n, ok := p.Next()
		if !ok {
			break
		}
		tr := &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: time.Second}
		v := 0.0
		if n.Sentinel {
			tr.Duration = 300 * time.Millisecond
			v = math.Exp(0.02*m.own[n.Seq-1] + m.common[n.Seq-1])
		} else {
			v = m.value(n.Stratum, treatment[n.Cell.Key()], n.Seq-1)
		}
		tr.Samples = []record.Sample{{Name: "time", Unit: record.Second, Value: v}}
		p.Done(tr)
		s.trials += tr.Duration.Seconds()
		if n.Again {
			s.again++
		}
	}
	s.cells += float64(len(p.cells))
	changed := 0
	if p.Epochs() != nil {
		changed = 1
	}
	s.epochs.add(changed, 1)
	sums, priors := p.summarise(p.last)
	var out []outcome
	for i := range p.strata {
		for k, id := range p.strata[i].cells {
			if k > 0 {
				e := p.rule.Estimate(sums[id], priors[id])
				v, _ := p.rule.Judge(e, record.Lower)
				out = append(out, outcome{i, k, e, v, p.rule.P(e)})
				s.width += math.Log(stat.Estimate.HalfWidth(e))
				s.number++
			}
		}
	}
	m.score(out, &s.score)
}

// TestSimulatedSentinel: with the sentinel, and blocks that run again, intervals
// cover as without; on a steady machine it costs its share and nothing else; on
// one that steps the intervals are no wider.
func TestSimulatedSentinel(t *testing.T) {
	studies, long, seed := settings(t)
	if !long {
		studies = 30
	}
	names := []string{"steady", "one step of 20 %", "level shifts of 10 %", "drift, rho 0.95", "noise of Student's t, 3 df",
		"3 % of trials 1.5 to 3 times as long", "all of these together", "one comparison alone, rho 0.95"}
	rows := make([]string, len(names))
	t.Run("sceneries", func(t *testing.T) {
		for i, name := range names {
			var sc scenery
			for _, s := range sceneries() {
				if s.name == name {
					sc = s
				}
			}
			if sc.strata == 0 {
				t.Fatalf("there is no scenery %q", name)
			}
			sc.extra = 1000
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				// Fixed and by looks, without and with.
				var got [2][2]watchful
				n := studies
				if sc.strata == 1 {
					n *= 4
				}
				for fixed := range 2 {
					for with := range 2 {
						r := rand.New(rand.NewPCG(seed, seedOf(name)+uint64(fixed)))
						for k := range n {
							st := makeStudy(sc.strata, sc.treats+1)
							if with == 1 {
								st.Sentinel = watched(1, 1, 0, 0.03).Sentinel
							}
							st.Seed = r.Uint64()
							if fixed == 1 {
								st.Stop.Fixed = orderly
							}
							sc.start(r, effects(r, &sc, k%2 == 1)).playWatched(st, &got[fixed][with])
						}
					}
				}
				row := "| " + name
				for fixed := range 2 {
					w := &got[fixed][1]
					row += fmt.Sprintf(" | %.1f → %.1f | %.2f → %.2f | %s → %s", got[fixed][0].trials/got[fixed][0].cells, w.trials/w.cells,
						100*math.Exp(got[fixed][0].width/got[fixed][0].number), 100*math.Exp(w.width/w.number), &got[fixed][0].covered, &w.covered)
				}
				w := &got[0][1]
				row += fmt.Sprintf(" | %s | %.1f |", &w.epochs, 100*w.again/w.trials)
				rows[i] = row
				t.Logf("%d studies: %s", n, row)
				for fixed := range 2 {
					miss := rate{of: got[fixed][1].covered.of}
					for j := range miss.of {
						miss.hits = append(miss.hits, miss.of[j]-got[fixed][1].covered.hits[j])
					}
					atMost(t, "intervals miss the truth", &miss, 0.07)
				}
				if name == "steady" || strings.HasPrefix(name, "noise of") {
					atMost(t, "a steady machine has epochs", &w.epochs, 0.02)
				}
				if w.again > againShare*w.trials+float64(n*sc.treats+n) {
					t.Errorf("%.0f of %.0f trials ran again", w.again, w.trials)
				}
			})
		}
	})
	if long {
		fmt.Printf("%s\n\n", strings.Join(rows, "\n"))
	}
}
