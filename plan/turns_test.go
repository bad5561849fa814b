package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/record"
)

// turned is a trial of a world in which starts and turns scatter by so much, in ln, and take so many seconds.
func turned(n Next, starts, turns, start, turn float64) *record.Trial {
	r := rand.New(rand.NewPCG(uint64(n.Seq), uint64(n.Block)))
	t := &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK}
	own, sum := starts*r.NormFloat64(), 0.0
	t.Duration = time.Duration((start + float64(n.Turns)*turn) * float64(time.Second))
	t.Phases = append(t.Phases, record.Phase{Name: "start", Duration: time.Duration(start * float64(time.Second))})
	for i := range n.Turns {
		y := own + turns*r.NormFloat64()
		sum += y / float64(n.Turns)
		t.Samples = append(t.Samples, record.Sample{Name: "time", Labels: record.MakeLabels(record.LabelTurn, fmt.Sprint(i+1)), Value: math.Exp(y)})
		t.Phases = append(t.Phases, record.Phase{Name: "run", Duration: time.Duration(turn * float64(time.Second))})
	}
	t.Samples = append(t.Samples, record.Sample{Name: "time", Value: math.Exp(sum)})
	return t
}

// TestChoose: where starts are dear and turns scatter, blocks get more turns; where starts scatter,
// or cost nothing and a budget has time for more blocks, they get one. A resumed study chooses the same, whatever the order in which
// it hears of its trials, and a number in the study file stays.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name                       string
		starts, turns, start, turn float64
		budget                     time.Duration
		least, most                int
	}{
		{"dear starts", 0.001, 0.1, 5, 0.2, 0, 4, mostChosen},
		{"starts scatter", 0.1, 0.001, 1, 0.2, 50 * time.Second, 1, 1},
		{"cheap starts", 0.1, 0.1, 0, 0.5, 25 * time.Second, 1, 1},
	} {
		for _, auto := range []bool{true, false} {
			st := makeStudy(1, 4)
			st.Workloads[0].Turns, st.Workloads[0].AutoTurns = 2, auto
			st.Stop.Width = 0.001 // never reached
			st.Budget.Time = c.budget
			p := New(st, nil, nil)
			var made []Next
			for {
				n, ok := p.Next()
				if !ok {
					break
				}
				made = append(made, n)
				p.Done(turned(n, c.starts, c.turns, c.start, c.turn))
			}
			for _, n := range made {
				switch early := n.Block == 1; {
				case (early || !auto) && n.Turns != 2:
					t.Errorf("%s: block %d has %d turns, want 2", c.name, n.Block, n.Turns)
				case n.Block > 3 && n.Block <= 6 && auto && (n.Turns < c.least || n.Turns > c.most):
					t.Errorf("%s: block %d has %d turns, want %d to %d", c.name, n.Block, n.Turns, c.least, c.most)
				}
			}
			again := New(st, nil, nil)
			half := len(made) / 2
			for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(half) {
				again.Done(turned(made[i], c.starts, c.turns, c.start, c.turn))
			}
			if n, ok := again.Next(); !ok || n.Turns != made[half].Turns || n.Cell.Key() != made[half].Cell.Key() {
				t.Errorf("%s: resumed, the next trial is %+v, want %+v", c.name, n, made[half])
			}
		}
	}
}
