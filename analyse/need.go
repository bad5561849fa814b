package analyse

import (
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// Need says what a comparison of a study takes to reach a wanted width.
type Need struct {
	Workload string        `json:"workload"`
	Cell     record.Cell   `json:"cell"`
	Response string        `json:"response"`
	Scatter  float64       `json:"scatter,omitempty"` // standard deviation of ln(ratio) from block to block; 0: not known
	From     string        `json:"from,omitempty"`    // where the scatter comes from: one of the constants below
	Last     float64       `json:"last,omitempty"`    // relative half-width after the study's last look
	Blocks   int           `json:"blocks,omitempty"`  // number that the wanted width takes; 0: more than can be measured, or not known
	Block    time.Duration `json:"block"`             // time of one block of the stratum
	stratum  int
}

// Where a scatter comes from.
const (
	FromItself   = "itself"          // the same comparison
	FromWorkload = "its workload"    // other comparisons of the workload
	FromAll      = "other workloads" // all other comparisons
	FromSentinel = "the sentinel"    // of the machine, which real workloads seldom beat
)

// Needs says, for each comparison of a study's first responses, how many blocks a relative
// half-width takes, with the scatter of an earlier result. That result may be of the same
// study, of a similar one, or of a pilot of a few blocks. trials are the earlier result's;
// expected gives the time of a trial that was never run.
func Needs(st *study.Study, width float64, earlier *Result, trials []record.Trial, expected func(record.Cell) time.Duration) []Need {
	n := &needs{rule: plan.Rule(st), width: width, own: map[string]float64{}, workload: map[string][]float64{}, took: map[string][]float64{}}
	n.read(st, earlier, trials)
	var out []Need
	for i := range st.Strata {
		s := &st.Strata[i]
		w := st.WorkloadOf(i)
		if s.Baseline < 0 || len(w.Responses) == 0 {
			continue
		}
		block := time.Duration(0)
		for _, c := range s.Cells {
			block += n.time(c, expected)
		}
		for j, c := range s.Cells {
			if j != s.Baseline {
				x := Need{Workload: w.Label, Cell: c, Response: w.Responses[0], Block: block, stratum: i}
				n.fill(&x)
				out = append(out, x)
			}
		}
	}
	return out
}

// NeedTime returns the time that all of them take, with as many blocks for each stratum as
// the comparison that needs most. It leaves out those that no number of blocks decides,
// and counts them.
func NeedTime(of []Need) (sum time.Duration, never int) {
	most := map[int]time.Duration{}
	for i := range of {
		if of[i].Blocks == 0 {
			never++
		}
		most[of[i].stratum] = max(most[of[i].stratum], time.Duration(of[i].Blocks)*of[i].Block)
	}
	for _, t := range most {
		sum += t
	}
	return sum, never
}

type needs struct {
	rule     stat.Rule
	width    float64
	own      map[string]float64 // by Comparison.key
	workload map[string][]float64
	all      []float64
	sentinel float64
	took     map[string][]float64 // seconds of good trials, by cell
}

func (n *needs) read(st *study.Study, earlier *Result, trials []record.Trial) {
	for i := range earlier.Compared {
		c := &earlier.Compared[i]
		sd := c.Estimate.SE * math.Sqrt(float64(c.Estimate.N))
		if !c.Estimate.HasInterval() || !(sd > 0) {
			continue
		}
		n.own[c.key()] = sd
		if c.First {
			n.workload[c.Workload] = append(n.workload[c.Workload], sd)
			n.all = append(n.all, sd)
		}
	}
	var watched []stat.Pair
	for i := range trials {
		t := &trials[i]
		if t.Status != record.OK {
			continue
		}
		key := t.Cell.Key()
		n.took[key] = append(n.took[key], t.Duration.Seconds())
		if s := st.Sentinel; s != nil && key == s.Cell.Key() && len(s.Workload.Responses) > 0 {
			if v, ok := t.Sample(s.Workload.Responses[0]); ok {
				watched = append(watched, stat.Pair{Base: 1, Other: v})
			}
		}
	}
	if s := stat.Summarise(watched); s.Undefined == "" && s.N >= stat.MinN {
		n.sentinel = math.Sqrt(2 * s.Var) // a ratio has the noise of two trials
	}
}

func (n *needs) time(cell record.Cell, expected func(record.Cell) time.Duration) time.Duration {
	if took := n.took[cell.Key()]; len(took) > 0 {
		return time.Duration(stat.Median(took) * float64(time.Second))
	}
	return expected(cell)
}

func (n *needs) fill(x *Need) {
	key := (&Comparison{Cell: x.Cell, Response: record.Response{Name: x.Response}}).key()
	switch {
	case n.own[key] > 0:
		x.Scatter, x.From = n.own[key], FromItself
	case len(n.workload[x.Workload]) > 0:
		x.Scatter, x.From = stat.GeoMean(n.workload[x.Workload]), FromWorkload
	case len(n.all) > 0:
		x.Scatter, x.From = stat.GeoMean(n.all), FromAll
	case n.sentinel > 0:
		x.Scatter, x.From = n.sentinel, FromSentinel
	default:
		return
	}
	last := n.rule.Fixed
	if len(n.rule.Looks) > 0 {
		last = slices.Max(n.rule.Looks)
	}
	if w := n.rule.HalfWidth(x.Scatter, last); !math.IsInf(w, 0) {
		x.Last = w
	}
	x.Blocks = n.rule.Blocks(x.Scatter, n.width)
}
