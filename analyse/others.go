package analyse

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Others is what everything beside the trials of a treatment used of their machines' processors in the measured
// time: other pods, the machine's own services. Only trials count whose collectors tell.
type Others struct {
	Treatment  string      `json:"treatment"`
	Cell       record.Cell `json:"cell"` // of the treatment
	Trials     int         `json:"trials"`
	Median     float64     `json:"median"` // cores
	Most       float64     `json:"most"`
	Processors float64     `json:"processors"` // of a machine
}

// Following is a comparison whose ratio follows what others used: where they used more beside one side than beside the
// other, the ratio is another. Ratio, Lo and Hi are what it would be if they used the same beside both, with its
// interval at the study's level, by a straight line through the blocks' log-ratios.
type Following struct {
	Stratum   string  `json:"stratum"`
	Workload  string  `json:"workload"`
	Treatment string  `json:"treatment"`
	Response  string  `json:"response"`
	Blocks    int     `json:"blocks"`
	PerCore   float64 `json:"per_core"` // factor of the ratio for a core that others use more beside the treatment
	Ratio     float64 `json:"ratio"`
	Lo        float64 `json:"lo"`
	Hi        float64 `json:"hi"`
}

// WarnOthers is the code of the warning that others used much of the processors.
const WarnOthers = "others"

const (
	// othersMuch is the part of the processors from which on what others use is a warning, and othersOften the
	// part of the trials.
	othersMuch  = 0.25
	othersOften = 0.25
	// followLevel is the significance of a slope that is told. There are many comparisons, and each is tried.
	followLevel = 0.01
	// followBlocks is how many blocks a line through them needs.
	followBlocks = 6
)

// othersOf is what everything beside a trial used of its machine's processors, and how many there are.
func (a *analysis) othersOf(t *record.Trial) (cores, processors float64, ok bool) {
	if path, _ := t.Cell.Get(study.FactorLinkPath); path == record.PathNodes || study.Spread(t.Cell) > 1 {
		return 0, 0, false // only one of its machines was read
	}
	return a.causeReader.Others(t.Identity())
}

// others says what others used beside each treatment, and which ratios follow it. causes has read the trials.
func (a *analysis) others(r *Result) {
	if slices.ContainsFunc(a.trials, (*record.Trial).Modelled) {
		return // nobody else is on a modelled machine
	}
	used := map[string]map[int]float64{} // by cell and block
	by := map[string]*Others{}
	values := map[string][]float64{}
	much, trials, most := 0, 0, 0.0
	of := a.treatmentOf()
	for _, cell := range slices.Sorted(maps.Keys(a.counting)) {
		for block, t := range a.counting[cell] {
			cores, processors, ok := a.othersOf(t)
			if !ok || of[cell] == "" {
				continue
			}
			if used[cell] == nil {
				used[cell] = map[int]float64{}
			}
			used[cell][block] = cores
			values[of[cell]] = append(values[of[cell]], cores)
			by[of[cell]] = &Others{Processors: processors}
			trials++
			if cores > othersMuch*processors {
				much++
			}
			most = max(most, cores)
		}
	}
	for _, t := range r.Treatments {
		if o := by[t.Key]; o != nil {
			v := values[t.Key]
			r.Others = append(r.Others, Others{t.Key, t.Cell, len(v), stat.Median(v), slices.Max(v), o.Processors})
		}
	}
	if float64(much) > othersOften*float64(trials) {
		r.Warnings = append(r.Warnings, Warning{Code: WarnOthers, Trials: much, Text: fmt.Sprintf(
			"in %d of %d trials, other pods or programs used more than %.0f %% of the machine's processors (%.2g cores at most); keep them off, or measure on quieter machines",
			much, trials, 100*othersMuch, most)})
	}
	for i := range r.Compared {
		if c := &r.Compared[i]; c.First {
			if f, ok := a.follows(c, used); ok {
				r.Following = append(r.Following, f)
			}
		}
	}
}

// follows fits a line to the log-ratios of a comparison's blocks, over how much more others used beside the treatment.
func (a *analysis) follows(c *Comparison, used map[string]map[int]float64) (Following, bool) {
	base, own := used[a.baselineOf(c)], used[c.Cell.Key()]
	bases, values := a.readings(a.baselineOf(c), c.Response.Name), a.readings(c.Cell.Key(), c.Response.Name)
	var x, y []float64
	for _, block := range slices.Sorted(maps.Keys(own)) {
		b, has := base[block]
		if ratio := math.Log(values[block]) - math.Log(bases[block]); has && !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
			x, y = append(x, own[block]-b), append(y, ratio)
		}
	}
	if len(x) < followBlocks {
		return Following{}, false
	}
	l := stat.FitLine(x, y)
	df := float64(len(x) - 2)
	if !(math.Abs(l.Slope) > stat.Student(df).Quantile(1-followLevel/2)*l.SlopeError) || !(l.SlopeError > 0) {
		return Following{}, false
	}
	half := stat.Student(df).Quantile(1-(1-a.rule.Level())/2) * l.InterceptError
	return Following{Stratum: c.Stratum, Workload: c.Workload, Treatment: c.Treatment, Response: c.Response.Name, Blocks: len(x),
		PerCore: math.Exp(l.Slope), Ratio: math.Exp(l.Intercept), Lo: math.Exp(l.Intercept - half), Hi: math.Exp(l.Intercept + half)}, true
}
