package words

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/ordered"
	"tare/record"
	"tare/study"
)

// StepCells returns the steps of each cell together.
func StepCells(steps []analyse.LoadStep) (out [][]analyse.LoadStep) {
	for from := 0; from < len(steps); {
		to := from + 1
		for to < len(steps) && steps[to].Cell.String() == steps[from].Cell.String() {
			to++
		}
		out = append(out, steps[from:to])
		from = to
	}
	return out
}

// LoadNames names the cells of loads by their workload and by the levels in which they differ. Of one workload, the levels are enough.
func LoadNames(steps []analyse.LoadStep) map[string]string {
	levels := map[string]map[string]bool{}
	for i := range steps {
		for _, l := range steps[i].Cell {
			if levels[l.Factor] == nil {
				levels[l.Factor] = map[string]bool{}
			}
			levels[l.Factor][l.Value] = true
		}
	}
	names := map[string]string{}
	for i := range steps {
		workload, parts := "", []string(nil)
		for _, l := range steps[i].Cell {
			switch {
			case l.Factor == study.FactorWorkload:
				workload = l.Value
			case len(levels[l.Factor]) > 1:
				parts = append(parts, l.Factor+"="+l.Value)
			}
		}
		if len(parts) == 0 || len(levels[study.FactorWorkload]) > 1 {
			parts = slices.Insert(parts, 0, workload)
		}
		names[steps[i].Cell.Key()] = strings.TrimSpace(strings.Join(parts, " "))
	}
	return names
}

// OfClaims reports whether a step is of a load on claims.
func OfClaims(x *analyse.LoadStep) bool {
	_, ok := x.Value("bound_p50")
	return ok
}

// StepFigure is a figure of a step as people read it, with the sign > if it is a lower bound; "" if the step does not have it.
func StepFigure(x *analyse.LoadStep, name string) string {
	v, ok := x.Value(name)
	if !ok {
		return ""
	}
	return Typical(&analyse.Level{Typical: v.Median, AtLeast: v.AtLeast}, v.Unit)
}

// Loads gives the result of each load at its last step: how far it came, what bound it, and its times.
func Loads(r *analyse.Result) (out []Sentence) {
	names := LoadNames(r.LoadSteps)
	for _, cell := range StepCells(r.LoadSteps) {
		x := &cell[len(cell)-1]
		text := names[x.Cell.Key()] + ": " + reached(cell)
		if OfClaims(x) {
			text += claimTimes(x)
		} else {
			text += objectFigures(r, x)
		}
		out = append(out, Sentence{About: treatmentAt(r, x.Cell), Tone: Note, Text: text + ".", Load: true})
	}
	return out
}

// reached says how far a load came, and what bound it there.
func reached(cell []analyse.LoadStep) string {
	x := &cell[len(cell)-1]
	what, figure := "object", "objects"
	if _, pods := x.Value("pods"); pods {
		what, figure = "pod", "pods"
		if _, guests := x.Value("guest_start_p50"); guests {
			what = "guest"
		}
	}
	if OfClaims(x) {
		what = "claim"
	} else if StepFigure(x, "pushed_p50") != "" {
		what = "image"
	}
	v, _ := x.Value(figure)
	out := Count(int(v.Median), what)
	if figure == "pods" && v.Median == 0 {
		out = "no pod ran"
	}
	if len(cell) > 1 {
		out += fmt.Sprintf(" in step %d", x.Step)
	}
	if most := cell[0].Trials; x.Trials < most {
		out += fmt.Sprintf(", which %d of %s reached", x.Trials, Count(most, "trial"))
	}
	if by := Bounds(x.Bounds, x.Trials); by != "" {
		out += ", bound by " + by
	}
	if by := Bounds(x.Removals, x.Trials); by != "" {
		out += "; removal by " + by
	}
	return out
}

// Bounds is what bound a step, and in how many trials if not in all: "nodes", or "nodes 2/3, scheduler 1/3".
func Bounds(bounds []analyse.LoadBound, trials int) string {
	if len(bounds) == 1 && bounds[0].Trials == trials {
		return bounds[0].By
	}
	parts := make([]string, len(bounds))
	for i, b := range bounds {
		parts[i] = fmt.Sprintf("%s %d/%d", b.By, b.Trials, trials)
	}
	return strings.Join(parts, ", ")
}

// objectFigures are those of a load on objects, or of a pipeline: times of its pods, what each takes from the node, then the API.
func objectFigures(r *analyse.Result, x *analyse.LoadStep) (out string) {
	var medians []string
	for _, s := range PipelineSteps() {
		if v := StepFigure(x, s+"_p50"); v != "" {
			medians = append(medians, s+" "+v)
		}
	}
	if len(medians) > 0 {
		out += "; medians: " + strings.Join(medians, ", ")
	}
	for _, of := range []string{"pod", "guest"} {
		if v := StepFigure(x, of+"_start_p50"); v != "" {
			out += "; a " + of + "'s start p50 " + v + ", p99 " + StepFigure(x, of+"_start_p99")
		}
	}
	out += perPod(r, x)
	if v := StepFigure(x, "rate"); v != "" {
		out += "; rate " + v
	}
	if v := StepFigure(x, "api_latency_p99"); v != "" {
		out += ", API p99 " + v
	}
	if v := StepFigure(x, "server_cpu"); v != "" {
		out += "; API server " + v + ", " + StepFigure(x, "server_memory")
	}
	return out
}

// claimTimes are the times of claims.
func claimTimes(x *analyse.LoadStep) string {
	var parts []string
	for _, s := range slices.Concat(ClaimStages(), RemovalStages()) {
		if v := StepFigure(x, s.Name+"_p50"); v != "" {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", s.Said, v, StepFigure(x, s.Name+"_p95")))
		}
	}
	return "; p50 (p95) until " + strings.Join(parts, ", ")
}

// perPod are the figures of a load's node for each pod. They are responses, so the value is that of the other tables.
func perPod(r *analyse.Result, x *analyse.LoadStep) string {
	var parts []string
	for _, f := range [][2]string{{"memory_per_pod", "memory"}, {"cache_per_pod", "page cache"}, {"disk_per_pod", "disk"}} {
		for i := range r.Compared {
			if c := &r.Compared[i]; c.Response.Name == f[0] && c.Level.N > 0 && c.Cell.Key() == x.Cell.Key() {
				parts = append(parts, f[1]+" "+Typical(&c.Level, c.Response.Shown()))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; each further pod: " + strings.Join(parts, ", ")
}

// treatmentAt is the key of a cell's treatment; "" of a cell that the comparisons do not have.
func treatmentAt(r *analyse.Result, cell record.Cell) string {
	for i := range r.Compared {
		if r.Compared[i].Cell.Key() == cell.Key() {
			return r.Compared[i].Treatment
		}
	}
	return ""
}

// loadHeadline is the headline of loads of which nothing is compared: what bound each; "" without loads.
func loadHeadline(r *analyse.Result) string {
	names := LoadNames(r.LoadSteps)
	by := ordered.Groups[string, string]{}
	for _, cell := range StepCells(r.LoadSteps) {
		if x := &cell[len(cell)-1]; len(x.Bounds) > 0 {
			by.Add(x.Bounds[0].By, names[x.Cell.Key()])
		}
	}
	var parts []string
	for bound, loads := range by.All() {
		parts = append(parts, bound+" ("+strings.Join(loads, ", ")+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return "What bound the last step of each load: " + List(parts) + "."
}

// Serving says how much load a server took natively, and what bound it: requests through an ingress, images of a registry. ""
// without such a load.
func Serving(r *analyse.Result) string {
	fixed := Fixed(r.Compared, func(x *analyse.Comparison) record.Cell { return x.Shared })
	by := ordered.Groups[string, string]{}
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Kind != "ingress" && c.Kind != "registry" || !c.Baseline || !c.First || c.Level.N == 0 {
			continue
		}
		bound := "limit not known"
		for k := range r.Causes {
			if f := &r.Causes[k]; f.Baseline && f.Stratum == c.Stratum && f.Cause != cause.Unknown {
				bound = "bound by " + Cause(f)
			}
		}
		by.Add(bound, fmt.Sprintf("%s %s %s", Stratum(r, c.Workload, c.Shared, fixed), c.Response.Name, Typical(&c.Level, c.Response.Shown())))
	}
	var parts []string
	for bound, loads := range by.All() {
		parts = append(parts, bound+": "+strings.Join(loads, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "The load with " + Base(r) + ", " + strings.Join(parts, "; ") + "."
}
