package section

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
)

// Steps shows the steps of loads that grow within a trial, and what bound each.
func Steps(r *analyse.Result) *Section { return steps(r, false) }

// steps are those of Steps; short: without what the API server did, of which a sentence is enough.
func steps(r *analyse.Result, short bool) *Section {
	other := ", not geometric means as above"
	if short && alone(r) { // nothing above has any
		other = ""
	}
	s := &Section{ID: "steps", Title: "Steps of the load", About: "medians of the trials" + other + "; bound by: what took most of the time, and in how many trials"}
	if len(r.LoadSteps) == 0 {
		return s
	}
	names := words.LoadNames(r.LoadSteps)
	var pipelines, plain, claims [][]analyse.LoadStep
	for _, cell := range words.StepCells(r.LoadSteps) {
		switch {
		case words.OfClaims(&cell[0]):
			claims = append(claims, cell)
		case words.StepFigure(&cell[0], "pushed_p50") != "":
			pipelines = append(pipelines, cell)
		default:
			plain = append(plain, cell)
		}
	}
	if len(plain) > 0 {
		s.Table(stepTable(plain, names, objectColumns(), true))
		lastVerdicts(s, plain, names)
	}
	if len(pipelines) > 0 {
		s.Head("Pipelines")
		s.Table(stepTable(pipelines, names, pipelineColumns(), true))
		s.Note("columns from waited to start: the median image")
		lastVerdicts(s, pipelines, names)
	}
	plateaus(s, plain, names)
	for i, cell := range claims {
		s.Head(names[cell[0].Cell.Key()])
		s.Table(claimSteps(cell))
		if i == 0 {
			s.Note("times are from when a claim was due; for gone and detached, from when its deletion was due")
		}
		s.Head("What bound " + names[cell[0].Cell.Key()])
		s.Table(claimBounds(cell))
		lastVerdicts(s, [][]analyse.LoadStep{cell}, names)
	}
	if slices.ContainsFunc(r.LoadSteps, func(x analyse.LoadStep) bool {
		return slices.ContainsFunc(x.Values, func(v analyse.LoadValue) bool { return v.AtLeast })
	}) {
		s.Note("> " + words.TooLate)
	}
	all := slices.Concat(plain, pipelines, claims)
	if worst := calls(all, names); short {
		s.Note(worst.inWords)
	} else {
		server(s, all, names)
		worst.show(s)
	}
	return s
}

// lastVerdicts explain what bound the last step of each cell.
func lastVerdicts(s *Section, cells [][]analyse.LoadStep, names map[string]string) {
	for _, cell := range cells {
		x := &cell[len(cell)-1]
		if x.Verdict == "" {
			continue
		}
		text := x.Verdict
		if x.Removal != "" {
			text += "; " + x.Removal
		}
		s.Note(fmt.Sprintf("%s, step %d, last trial: %s.", names[x.Cell.Key()], x.Step, strings.TrimSuffix(text, ".")))
	}
}

// A figure of a step, and its column.
type stepColumn struct{ figure, head string }

// objectColumns are those of a load on objects. Those that no step has are left out.
func objectColumns() []stepColumn {
	return []stepColumn{{"objects", "objects"}, {"rate", "a second"}, {"api_latency_p99", "API p99"}, {"pod_start_p50", "start p50"}, {"pod_start_p99", "start p99"}, {"guest_start_p50", "guest p50"}, {"guest_start_p99", "guest p99"}}
}

// pipelineColumns are those of a load that builds an image for each object.
func pipelineColumns() []stepColumn {
	out := []stepColumn{{"objects", "images"}, {"rate", "a second"}}
	for _, step := range words.PipelineSteps() {
		out = append(out, stepColumn{step + "_p50", step})
	}
	return append(out, stepColumn{"pod_start_p50", "start"})
}

// stepTable has a row for each step, and the columns that one of them has.
func stepTable(cells [][]analyse.LoadStep, names map[string]string, columns []stepColumn, bounds bool) *Table {
	columns = slices.DeleteFunc(columns, func(c stepColumn) bool {
		return !slices.ContainsFunc(cells, func(cell []analyse.LoadStep) bool {
			return slices.ContainsFunc(cell, func(x analyse.LoadStep) bool { return words.StepFigure(&x, c.figure) != "" })
		})
	})
	t := NewTable(2, "of", "step")
	t.Grouped = true
	for _, c := range columns {
		t.Add(c.head)
	}
	if bounds {
		t.Add("bound by")
	}
	for _, cell := range cells {
		for i := range cell {
			x := &cell[i]
			row := t.Row(names[x.Cell.Key()], strconv.Itoa(x.Step))
			for k, c := range columns {
				row[2+k].First = stepFigure(x, c.figure)
			}
			if bounds {
				row[len(row)-1] = boundBy(x.Bounds, x.Trials)
			}
		}
	}
	return t
}

// server shows what the API server and the rest of the control plane did at each plateau.
func server(s *Section, cells [][]analyse.LoadStep, names map[string]string) {
	had := func(figures ...string) [][]analyse.LoadStep {
		return slices.DeleteFunc(slices.Clone(cells), func(cell []analyse.LoadStep) bool {
			return !slices.ContainsFunc(cell, func(x analyse.LoadStep) bool {
				return slices.ContainsFunc(figures, func(figure string) bool { return words.StepFigure(&x, figure) != "" })
			})
		})
	}
	columns := func(figures []string, heads ...string) []stepColumn {
		out := []stepColumn{{"objects", "objects"}}
		for i, name := range figures {
			out = append(out, stepColumn{name, heads[i]})
		}
		return out
	}
	of := had(words.ServerFigures()[0])
	if len(of) > 0 {
		s.Head("The API server at each plateau")
		s.Table(stepTable(of, names, columns(words.ServerFigures(), "CPU", "memory", "write to etcd", "queued", "refused"), false))
		s.Note("CPU: mean while the step's objects were created; memory: at the end of that; queued: all waits in the API server's queues; refused: requests that it answered with 429")
	} else if len(had("api_latency_p99")) > 0 {
		s.Note("the CPU and memory of the API server are not known, because its /metrics could not be read")
	}
	control := had(words.ControlFigures()...)
	switch {
	case len(control) > 0:
		s.Head("The rest of the control plane at each plateau")
		s.Table(stepTable(control, names, columns(words.ControlFigures(), "etcd: CPU", "memory", "scheduler: CPU", "memory", "controllers: CPU", "memory"), false))
		s.Note("CPU: mean over the step and its pause, over all instances; controllers: the controller manager. A kubelet reads these every 10 s or so, so a short step has none")
	case len(of) > 0:
		s.Note("the CPU and memory of etcd, scheduler and controller manager are not known. They are read where these are static pods of the cluster's nodes, the load may read the kubelets, and a step takes 10 s or more")
	}
}

// plateaus shows the figures of the load's node at each plateau, for loads that read their node.
func plateaus(s *Section, cells [][]analyse.LoadStep, names map[string]string) {
	heads, columns := []string{"memory", "page cache", "disk", "written", "read"}, []stepColumn{{"pods", "pods"}}
	for i, name := range words.NodeFigures() {
		columns = append(columns, stepColumn{name, heads[i]})
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(cell []analyse.LoadStep) bool { return words.StepFigure(&cell[0], columns[1].figure) == "" })
	if len(cells) == 0 {
		return
	}
	s.Head("The node at each plateau, compared with before the first step")
	s.Table(stepTable(cells, names, columns, false))
	if slices.ContainsFunc(slices.Concat(cells...), func(x analyse.LoadStep) bool {
		return slices.ContainsFunc(words.NodeFigures(), func(name string) bool { v, _ := x.Value(name); return v.Median < 0 })
	}) {
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

// apiCalls is the latency of the API by verb and resource. The full report shows the table, the short answer only the sentence.
type apiCalls struct {
	table   *Table
	inWords string
}

// calls finds the step in which each was greatest. Beside it stand the published objectives.
func calls(cells [][]analyse.LoadStep, names map[string]string) (out apiCalls) {
	t := NewTable(3, "of", "verb", "resource", "step", "p50", "p99", "objective", "")
	t.Grouped = true
	var missed []string
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
		name := names[cell[0].Cell.Key()]
		for i, c := range worst {
			most, verdict := objective, "met"
			if c.Verb == "list" {
				most = listObjective
			}
			if c.P99 > most {
				verdict = "not met"
				missed = append(missed, fmt.Sprintf("%s %s %s (p99 %s)", name, c.Verb, c.Resource, words.Value(c.P99, record.Second)))
			}
			t.Row(name, c.Verb, c.Resource, strconv.Itoa(steps[i]), words.Value(c.P50, record.Second), words.Value(c.P99, record.Second), words.Value(most, record.Second), verdict)
		}
	}
	switch {
	case len(t.Rows) == 0:
		return out
	case len(missed) == 0:
		out.inWords = "API latency: all requests met the objective of Kubernetes, a p99 of 1 s, or of 30 s for lists"
	default:
		out.inWords = fmt.Sprintf("API latency: these did not meet the objective of Kubernetes, a p99 of 1 s, or of 30 s for lists: %s", strings.Join(missed, ", "))
	}
	out.table = t
	return out
}

// show adds the table to a section.
func (c apiCalls) show(s *Section) {
	if c.table == nil {
		return
	}
	s.Head("API latency by verb and resource")
	s.Table(c.table)
	s.Note("from when the last request was sent to its answer, in the step with the greatest p99; the objective of Kubernetes is for the p99")
}

// claimSteps is the table of a load on claims: a row for each stage of each step.
func claimSteps(steps []analyse.LoadStep) *Table {
	t := NewTable(2, "step", "until", "claims", "a second", "p50", "p95", "p99")
	for i := range steps {
		x := &steps[i]
		part := func(rate string, stages []words.Stage) {
			once := []string{stepFigure(x, "objects"), stepFigure(x, rate)}
			for _, stage := range stages {
				if words.StepFigure(x, stage.Name+"_p50") == "" {
					continue
				}
				row := []string{strconv.Itoa(x.Step), stage.Said, once[0], once[1]}
				for _, q := range []string{"_p50", "_p95", "_p99"} {
					row = append(row, stepFigure(x, stage.Name+q))
				}
				t.Row(row...)
				once = []string{"", ""}
			}
		}
		part("rate", words.ClaimStages())
		part("removal_rate", words.RemovalStages())
	}
	return t
}

// claimBounds is the table of the verdicts on a load on claims. It is apart from the stages, one of which is called bound.
func claimBounds(steps []analyse.LoadStep) *Table {
	t := NewTable(1, "step", "until usable", "until gone")
	t.Words = true
	for i := range steps {
		x := &steps[i]
		row := t.Row(strconv.Itoa(x.Step))
		row[1], row[2] = boundBy(x.Bounds, x.Trials), boundBy(x.Removals, x.Trials)
	}
	return t
}

func stepFigure(x *analyse.LoadStep, name string) string {
	return cmp.Or(words.StepFigure(x, name), "-")
}

// boundBy is the cell of what bound a step: the most frequent verdict, then the others.
func boundBy(bounds []analyse.LoadBound, trials int) (c Cell) {
	var rest []string
	for i, b := range bounds {
		if said := fmt.Sprintf("%s %d/%d", b.By, b.Trials, trials); i == 0 {
			c.First = said
		} else {
			rest = append(rest, said)
		}
	}
	if len(rest) > 0 {
		c.First += ","
	}
	c.Second = strings.Join(rest, ", ")
	return c
}
