package analyse

import (
	"math"
	"slices"
	"time"

	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

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
	Fewest   int           `json:"fewest,omitempty"`  // with Most: the range that holds the number in 80 % of cases, as little as the scatter is known
	Most     int           `json:"most,omitempty"`    // 0: more than can be measured, or not known
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
	n := &needs{rule: plan.Rule(st), width: width, own: map[string]scatter{}, workload: map[string][]scatter{}, took: map[string][]float64{}}
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

// NeedTime returns the time that all of them take by the upper ends of their ranges, with as
// many blocks for each stratum as the comparison that needs most. It leaves out those that
// no number of blocks decides, and counts them.
func NeedTime(of []Need) (sum time.Duration, never int) {
	most := map[int]time.Duration{}
	for i := range of {
		if of[i].Most == 0 {
			never++
		}
		most[of[i].stratum] = max(most[of[i].stratum], time.Duration(of[i].Most)*of[i].Block)
	}
	for _, t := range most {
		sum += t
	}
	return sum, never
}

// scatter is a standard deviation of logarithms, and how many degrees of freedom know it.
type scatter struct{ sd, df float64 }

// span is the range of the true standard deviation in 80 % of cases.
func (s scatter) span() (lo, hi float64) {
	chi := distuv.ChiSquared{K: math.Min(s.df, 1e6)}
	return s.sd * math.Sqrt(chi.K/chi.Quantile(0.9)), s.sd * math.Sqrt(chi.K/chi.Quantile(0.1))
}

// typical is what several scatters let expect of another one: their geometric mean, and the
// range of 80 % of them. One alone is as little known as itself.
func typical(of []scatter) (mid, lo, hi float64) {
	if len(of) == 1 {
		lo, hi = of[0].span()
		return of[0].sd, lo, hi
	}
	logs := make([]float64, len(of))
	for i, s := range of {
		logs[i] = math.Log(s.sd)
	}
	mean, sd := gonum.MeanStdDev(logs, nil)
	n := float64(len(of))
	half := stat.Student(n-1).Quantile(0.9) * sd * math.Sqrt(1+1/n)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)
}

type needs struct {
	rule     stat.Rule
	width    float64
	own      map[string]scatter // by Comparison.key
	workload map[string][]scatter
	all      []scatter
	sentinel scatter
	took     map[string][]float64 // seconds of good trials, by cell
}

func (n *needs) read(st *study.Study, earlier *Result, trials []record.Trial) {
	for i := range earlier.Compared {
		c := &earlier.Compared[i]
		sd := c.Estimate.SE * math.Sqrt(float64(c.Estimate.N))
		if !c.Estimate.HasInterval() || !(sd > 0) {
			continue
		}
		own := scatter{sd, c.Estimate.DF}
		n.own[c.key()] = own
		if c.First {
			n.workload[c.Workload] = append(n.workload[c.Workload], own)
			n.all = append(n.all, own)
		}
	}
	var watched []stat.Pair
	for i := range trials {
		t := &trials[i]
		if t.Status != record.OK {
			continue
		}
		key := t.Cell.Key()
		if t.Duration > 0 { // an imported trial has none
			n.took[key] = append(n.took[key], t.Duration.Seconds())
		}
		if s := st.Sentinel; s != nil && key == s.Cell.Key() && len(s.Workload.Responses) > 0 {
			if v, ok := t.Sample(s.Workload.Responses[0]); ok {
				watched = append(watched, stat.Pair{Base: 1, Other: v})
			}
		}
	}
	if s := stat.Summarise(watched); s.Undefined == "" && s.N >= stat.MinN {
		n.sentinel = scatter{math.Sqrt(2 * s.Var), float64(s.N - 1)} // a ratio has the noise of two trials
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
	var of []scatter
	switch {
	case n.own[key].sd > 0:
		x.From, of = FromItself, []scatter{n.own[key]}
	case len(n.workload[x.Workload]) > 0:
		x.From, of = FromWorkload, n.workload[x.Workload]
	case len(n.all) > 0:
		x.From, of = FromAll, n.all
	case n.sentinel.sd > 0:
		x.From, of = FromSentinel, []scatter{n.sentinel}
	default:
		return
	}
	var lo, hi float64
	x.Scatter, lo, hi = typical(of)
	last := n.rule.Fixed
	if len(n.rule.Looks) > 0 {
		last = slices.Max(n.rule.Looks)
	}
	if w := n.rule.HalfWidth(x.Scatter, last); !math.IsInf(w, 0) {
		x.Last = w
	}
	x.Blocks, x.Fewest, x.Most = n.rule.Blocks(x.Scatter, n.width), n.rule.Blocks(lo, n.width), n.rule.Blocks(hi, n.width)
}
