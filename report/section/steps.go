package section

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// Steps shows the steps of loads that grow within a trial, and what bound each.
func Steps(r *analyse.Result) *Section {
	s := &Section{ID: "steps", Title: "Steps of the load", About: "medians; bound by: what took most of the time, and in how many trials"}
	if len(r.LoadSteps) == 0 {
		return s
	}
	names := loadNames(r.LoadSteps)
	var plain, claims [][]analyse.LoadStep
	for _, cell := range stepCells(r.LoadSteps) {
		if _, ok := cell[0].Value("bound_p50"); ok {
			claims = append(claims, cell)
		} else {
			plain = append(plain, cell)
		}
	}
	if len(plain) > 0 {
		s.Table(objectSteps(plain, names))
	}
	for _, cell := range plain {
		lastVerdict(s, cell, names)
	}
	plateaus(s, plain, names)
	for i, cell := range claims {
		s.Head(names[cell[0].Cell.Key()])
		s.Table(claimSteps(cell))
		if i == 0 {
			s.Note("times are from when a claim was due; for gone and detached, from when its deletion was due")
		}
		lastVerdict(s, cell, names)
	}
	if slices.ContainsFunc(r.LoadSteps, func(x analyse.LoadStep) bool {
		return slices.ContainsFunc(x.Values, func(v analyse.LoadValue) bool { return v.AtLeast })
	}) {
		s.Note("> " + words.TooLate)
	}
	calls(s, slices.Concat(plain, claims), names)
	return s
}

// loadNames names the cells of loads by their workload and by the levels in which they differ.
func loadNames(steps []analyse.LoadStep) map[string]string {
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
		var parts []string
		for _, l := range steps[i].Cell {
			switch {
			case l.Factor == study.FactorWorkload:
				parts = append(parts, l.Value)
			case len(levels[l.Factor]) > 1:
				parts = append(parts, l.Factor+"="+l.Value)
			}
		}
		names[steps[i].Cell.Key()] = strings.Join(parts, " ")
	}
	return names
}

// stepCells returns the steps of each cell together.
func stepCells(steps []analyse.LoadStep) (out [][]analyse.LoadStep) {
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

// lastVerdict explains what bound the last step of a cell.
func lastVerdict(s *Section, cell []analyse.LoadStep, names map[string]string) {
	x := &cell[len(cell)-1]
	if x.Verdict == "" {
		return
	}
	text := x.Verdict
	if x.Removal != "" {
		text += "; " + x.Removal
	}
	s.Note(fmt.Sprintf("%s, step %d, last trial: %s.", names[x.Cell.Key()], x.Step, text))
}

// objectSteps is the table of loads on objects and of pipelines. Figures that no step has are left out.
func objectSteps(cells [][]analyse.LoadStep, names map[string]string) *Table {
	figures := slices.DeleteFunc([]string{"objects", "rate", "api_latency_p99", "waited_p50", "built_p50", "pushed_p50", "pulled_p50", "started_p50", "pod_start_p50", "pod_start_p99"},
		func(name string) bool {
			return !slices.ContainsFunc(cells, func(cell []analyse.LoadStep) bool {
				return slices.ContainsFunc(cell, func(x analyse.LoadStep) bool { _, ok := x.Value(name); return ok })
			})
		})
	t := NewTable(2, append([]string{"of", "step"}, append(figures, "bound by")...)...)
	for _, cell := range cells {
		of := names[cell[0].Cell.Key()]
		for i := range cell {
			x := &cell[i]
			row := []string{of, strconv.Itoa(x.Step)}
			for _, name := range figures {
				row = append(row, stepFigure(x, name))
			}
			t.Row(append(row, boundBy(x.Bounds, x.Trials))...)
			of = ""
		}
	}
	return t
}

// plateaus shows the figures of the load's node at each plateau, for loads that read their node.
func plateaus(s *Section, cells [][]analyse.LoadStep, names map[string]string) {
	figures, negative := words.NodeFigures(), false
	t := NewTable(2, "of", "step", "pods", "memory", "page cache", "disk space", "written", "read")
	for _, cell := range cells {
		if _, ok := cell[0].Value(figures[0]); !ok {
			continue
		}
		of := names[cell[0].Cell.Key()]
		for i := range cell {
			x := &cell[i]
			row := []string{of, strconv.Itoa(x.Step), stepFigure(x, "pods")}
			for _, name := range figures {
				v, _ := x.Value(name)
				negative = negative || v.Median < 0
				row = append(row, stepFigure(x, name))
			}
			t.Row(row...)
			of = ""
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	s.Head("The node at each plateau, compared with before the first step")
	s.Table(t)
	if negative {
		s.Note("a negative figure: other programs on the node released more than the pods took, so this plateau says nothing about the pods; run the study again while the node is quiet")
	}
	s.Note("these are figures of the whole node; pods that share the pages of their image add little page cache and little disk space")
}

// Objectives of Kubernetes for 99 % of requests, in seconds
// (https://github.com/kubernetes/community/blob/master/sig-scalability/slos/api_call_latency.md).
const (
	objective     = 1.0
	listObjective = 30.0
)

// calls shows the latency of the API by verb and resource, of the step in which it was greatest, beside the published objectives.
func calls(s *Section, cells [][]analyse.LoadStep, names map[string]string) {
	t := NewTable(3, "of", "verb", "resource", "step", "p50", "p99", "objective", "")
	t.Grouped = true
	for _, cell := range cells {
		var worst []analyse.LoadCall
		var steps []int
		for i := range cell {
			for _, c := range cell[i].Calls {
				at := slices.IndexFunc(worst, func(w analyse.LoadCall) bool { return w.Verb == c.Verb && w.Resource == c.Resource })
				switch {
				case at < 0:
					worst, steps = append(worst, c), append(steps, cell[i].Step)
				case c.P99 > worst[at].P99:
					worst[at], steps[at] = c, cell[i].Step
				}
			}
		}
		for i, c := range worst {
			most, verdict := objective, "met"
			if c.Verb == "list" {
				most = listObjective
			}
			if c.P99 > most {
				verdict = "not met"
			}
			t.Row(names[cell[0].Cell.Key()], c.Verb, c.Resource, strconv.Itoa(steps[i]), words.Value(c.P50, record.Second), words.Value(c.P99, record.Second), words.Value(most, record.Second), verdict)
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	s.Head("API latency by verb and resource")
	s.Table(t)
	s.Note("from when the last request was sent to its answer, in the step with the greatest p99; the objective of Kubernetes is for the p99")
}

// claimSteps is the table of a load on claims: a row for each stage of each step. The first row of a step has the verdict on the time
// until its claims were usable. The first row of the removal has the verdict on the removal.
func claimSteps(steps []analyse.LoadStep) *Table {
	t := NewTable(2, "step", "until", "claims", "a second", "p50", "p95", "p99", "bound by")
	for i := range steps {
		x := &steps[i]
		part := func(rate string, bounds []analyse.LoadBound, stages []words.Stage) {
			once := []string{stepFigure(x, "objects"), stepFigure(x, rate), boundBy(bounds, x.Trials)}
			for _, stage := range stages {
				if _, ok := x.Value(stage.Name + "_p50"); !ok {
					continue
				}
				row := []string{strconv.Itoa(x.Step), stage.Said, once[0], once[1]}
				for _, q := range []string{"_p50", "_p95", "_p99"} {
					row = append(row, stepFigure(x, stage.Name+q))
				}
				t.Row(append(row, once[2])...)
				once = []string{"", "", ""}
			}
		}
		part("rate", x.Bounds, words.ClaimStages())
		part("removal_rate", x.Removals, words.RemovalStages())
	}
	return t
}

func stepFigure(x *analyse.LoadStep, name string) string {
	v, ok := x.Value(name)
	if !ok {
		return "-"
	}
	return words.Typical(&analyse.Level{Typical: v.Median, AtLeast: v.AtLeast}, v.Unit)
}

func boundBy(bounds []analyse.LoadBound, trials int) string {
	var out []string
	for _, b := range bounds {
		out = append(out, fmt.Sprintf("%s %d/%d", b.By, b.Trials, trials))
	}
	return strings.Join(out, ", ")
}
