package analyse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tare/plan"
	"tare/record"
)

// TestScatter: what scatters from start to start is told from what scatters from turn to turn, and
// the best number of turns follows from the times of a start and of a turn.
func TestScatter(t *testing.T) {
	const blocks, turns = 16, 4
	for _, tt := range []struct {
		starts, turns float64
		want          Limit
	}{{0.1, 0.01, LimitStarts}, {0.01, 0.1, LimitTurns}} {
		st := makeStudy()
		st.Stop.Looks, st.Stop.Fixed = nil, blocks
		for i := range st.Workloads {
			st.Workloads[i].Turns = turns
		}
		r := rand.New(rand.NewPCG(1, 2))
		res := Analyse(st, play(st, nil, func(n plan.Next) record.Trial {
			x := record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: 3 * time.Second}
			x.Phases = append(x.Phases, record.Phase{Name: "start", Duration: 2 * time.Second})
			name := st.WorkloadOf(n.Stratum).Responses[0]
			start, sum := tt.starts*r.NormFloat64(), 0.0
			for i := range turns {
				v := start + tt.turns*r.NormFloat64()
				sum += v / turns
				x.Samples = append(x.Samples, record.Sample{Name: name, Unit: record.Second, Value: math.Exp(v), Labels: record.MakeLabels(record.LabelTurn, fmt.Sprint(i+1))})
				x.Phases = append(x.Phases, record.Phase{Name: "run", Duration: 250 * time.Millisecond})
			}
			x.Samples = append(x.Samples, record.Sample{Name: name, Unit: record.Second, Value: math.Exp(sum)})
			return x
		}), nil, Describe(describe))
		for _, w := range []string{"rr", "stream", "noop"} {
			c := find(t, res, w, "runc", slices.Concat(st.Workloads[0].Responses[:1], st.Workloads[1].Responses, st.Workloads[2].Responses)[slices.Index([]string{"rr", "stream", "noop"}, w)])
			s := c.Scatter
			if s == nil {
				t.Fatalf("%s: nothing is said of the levels", w)
			}
			// A ratio has the scatter of two trials.
			if want := tt.turns * math.Sqrt2; s.N != turns || math.Abs(s.Turns/want-1) > 0.3 {
				t.Errorf("%s: turns scatter by %.3f, want %.3f; %d turns", w, s.Turns, want, s.N)
			}
			if want := tt.starts * math.Sqrt2; tt.want == LimitStarts && math.Abs(s.Starts/want-1) > 0.6 {
				t.Errorf("%s: starts scatter by %.3f, want %.3f", w, s.Starts, want)
			}
			if s.Limits != tt.want || s.Says == "" {
				t.Errorf("%s: %q limits it, want %q; %+v", w, s.Limits, tt.want, s)
			}
			if best := math.Sqrt(8) * s.Turns / s.Starts; best <= mostTurns && s.Best != max(1, int(math.Round(best))) {
				t.Errorf("%s: %d turns are best, want %.1f", w, s.Best, best)
			}
		}
	}
}
