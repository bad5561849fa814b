package section

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// maxCells bounds how many cells a line names.
const maxCells = 3

// groups puts members under names, both in the order in which they come, each member once.
type groups struct {
	names   []string
	members map[string][]string
	seen    map[[2]string]bool
}

func (g *groups) add(name, member string) {
	if g.seen == nil {
		g.members, g.seen = make(map[string][]string), make(map[[2]string]bool)
	}
	if g.seen[[2]string{name, member}] {
		return
	}
	g.seen[[2]string{name, member}] = true
	if g.members[name] == nil {
		g.names = append(g.names, name)
	}
	g.members[name] = append(g.members[name], member)
}

// Stops says how many blocks each stratum had and why it stopped, strata with the same
// reason together.
func Stops(r *analyse.Result) *Section {
	s := &Section{ID: "stops", In: "asked", Folded: true, Title: "Why measuring stopped"}
	var reasons groups
	seen := make(map[string]bool)
	fixed := fixedLevels(r)
	for _, row := range r.Rows() {
		c := row[0]
		if seen[c.Stratum] {
			continue // it has several responses
		}
		seen[c.Stratum] = true
		reason := "not stopped yet"
		if e := c.Ending; e != nil {
			reason = strings.TrimSuffix(e.Text, ".")
			if n := words.Count(e.Blocks, "block"); !strings.Contains(reason, n) { // else it is said already
				reason = "after " + n + ", " + reason
			}
		}
		reasons.add(reason, words.Stratum(r, c.Workload, c.Shared, fixed))
	}
	for _, reason := range reasons.names {
		s.Item(someOf(reasons.members[reason], len(seen)), reason)
	}
	needs(s, r, fixed)
	limits(s, r, fixed)
	return s
}

// needing are the rows that ended undecided, those first that need least time.
func needing(r *analyse.Result) []*analyse.Comparison {
	var of []*analyse.Comparison
	for i := range r.Compared {
		if c := &r.Compared[i]; c.Needs != nil {
			of = append(of, c)
		}
	}
	slices.SortStableFunc(of, func(a, b *analyse.Comparison) int { return cmp.Compare(a.Needs.Time, b.Needs.Time) })
	return of
}

// open counts rows without a verdict. They are not called undecided: some have surely no large cost, and only
// whether it is within the margin is not known.
func open(of []*analyse.Comparison) string { return words.Count(len(of), "row") + " without a verdict" }

// needs says what the rows that ended undecided would need, those first that need least time.
func needs(s *Section, r *analyse.Result, fixed record.Cell) {
	of := needing(r)
	if len(of) == 0 {
		return
	}
	var rows []string
	early := 0
	for _, c := range of {
		if c.Needs.Yielded {
			early++
		}
	}
	for _, c := range of[:min(len(of), 2*maxCells)] {
		rows = append(rows, fmt.Sprintf("%s %s %s", words.Stratum(r, c.Workload, c.Shared, fixed), words.TreatmentOf(r, c.Treatment), c.Needs))
	}
	if more := len(of) - len(rows); more > 0 {
		rows = append(rows, fmt.Sprintf("%d more need longer (in --json)", more))
	}
	lead := open(of) + " would need"
	if early > 0 {
		lead += fmt.Sprintf(" (%d of them stopped early, to save their time)", early)
	}
	s.Item(lead, strings.Join(rows, "; "))
}

// limits says what keeps intervals wide that are wider than the margin, starts or turns, and how many
// turns would suit each workload.
func limits(s *Section, r *analyse.Result, fixed record.Cell) {
	var by groups
	var best ordered.Groups[string, float64] // by workload
	rows := 0
	for i := range r.Compared {
		c := &r.Compared[i]
		if !c.First || c.Scatter == nil || c.Scatter.Limits == "" || c.Estimate.HalfWidth() <= r.Margin {
			continue
		}
		rows++
		by.add(c.Scatter.Says, words.Stratum(r, c.Workload, c.Shared, fixed)+" "+words.TreatmentOf(r, c.Treatment))
		if n := c.Scatter.Best; n > 0 {
			best.Add(c.Workload, float64(n))
		}
	}
	for _, says := range by.names {
		s.Item(someOf(by.members[says], rows), says)
	}
	var about []string
	for w, n := range best.All() {
		about = append(about, fmt.Sprintf("%s %.0f", w, stat.Median(n)))
	}
	if len(about) > 0 {
		s.Item("turns that would narrow these rows most in the same time, about", strings.Join(about, ", "))
	}
}

// Placements says where each endpoint of the workloads ran, strata alike together. Where no
// workload has two endpoints there is nothing to say.
func Placements(r *analyse.Result) *Section {
	s := &Section{ID: "ends", In: "asked", Title: "Where each end ran", About: "of process, all natively"}
	if !slices.ContainsFunc(r.Placements, func(e analyse.Placement) bool { return len(e.Roles) > 1 }) {
		return s
	}
	names := make(map[string]string)
	fixed := fixedLevels(r)
	for i := range r.Compared {
		c := &r.Compared[i]
		names[c.Stratum] = words.Stratum(r, c.Workload, c.Shared, fixed)
	}
	var texts groups
	for _, e := range r.Placements {
		texts.add(e.Text, names[e.Stratum])
	}
	for _, text := range texts.names {
		s.Item(text, someOf(texts.members[text], len(r.Placements)))
	}
	return s
}

// someOf names a few strata of all, and counts many.
func someOf(names []string, all int) string {
	switch n := len(names); {
	case n <= 2*maxCells:
		return strings.Join(names, ", ")
	case n == all:
		return fmt.Sprintf("all %d variants", n)
	default:
		return fmt.Sprintf("%d of %d variants (%s and %d more)", n, all, strings.Join(names[:maxCells], ", "), n-maxCells)
	}
}

// Epochs says what the sentinel saw of the machine: that it stayed as it was, or where it
// changed and which blocks ran again for that.
func Epochs(r *analyse.Result) *Section {
	s := &Section{ID: "epochs", Title: "The machine meanwhile"}
	x := r.Sentinel
	if x == nil || x.Skipped != "" && len(x.Points) == 0 {
		return s // what the host cannot do is listed with the skips
	}
	seen := fmt.Sprintf("%s of the sentinel (%s %s, %s of the time", words.Count(len(x.Points), "trial"), x.Kind, x.Response.Name, share(x.Share))
	if x.Scatter > 0 {
		seen += ", scatter " + share(x.Scatter)
	}
	seen += ")"
	if x.Failed > 0 {
		seen += fmt.Sprintf(", and %d that failed", x.Failed)
	}
	most := make(map[string]int) // points of a node
	for _, p := range x.Points {
		most[p.Node]++
	}
	changed := r.EpochsByNode()
	switch {
	case len(changed) > 0:
		seen += " saw " + strings.Join(epochCounts(changed), ", ")
	case len(x.Points) == 0 || slices.Max(slices.Collect(maps.Values(most))) < analyse.MinSentinels:
		seen += fmt.Sprintf(": too few to detect a change, which needs %d", analyse.MinSentinels)
	default:
		seen += " saw no change"
	}
	s.Item("", seen)
	if busy := x.Busy(); busy != "" {
		s.Item("warning", busy)
	}
	for _, own := range changed {
		for i := 1; i < len(own); i++ {
			s.Item(change(&own[i-1], &own[i]))
		}
	}
	return s
}

// epochCounts says how many epochs each node had.
func epochCounts(byNode [][]analyse.Epoch) (out []string) {
	for _, own := range byNode {
		n := words.Count(len(own), "epoch")
		if own[0].Node != "" {
			n += " on node " + own[0].Node
		}
		out = append(out, n)
	}
	return out
}

// change tells of one change, and what became of the blocks there.
func change(before, e *analyse.Epoch) (lead, text string) {
	var what []string
	for _, w := range e.What {
		switch w {
		case plan.ChangedTime:
			what = append(what, "sentinel x "+words.Ratio(e.Ratio))
		case plan.ChangedWait:
			what = append(what, fmt.Sprintf("run-queue wait %s, then %s of the time", share(before.Wait), share(e.Wait)))
		}
	}
	again := 0
	for _, x := range e.Blocks {
		if x.Again {
			again++
		}
	}
	subject := "it"
	if e.Node != "" {
		subject = "node " + e.Node
	}
	lead = fmt.Sprintf("%s changed after trial %d and before %d (%s)", subject, e.After, e.Seq, strings.Join(what, "; "))
	switch {
	case len(e.Blocks) == 0:
		return lead, "no block lies there"
	case again == len(e.Blocks):
		return lead, words.Count(again, "block") + " ran again"
	case again == 0:
		return lead, words.Count(len(e.Blocks), "block") + " around it did not run again, for lack of time"
	}
	return lead, fmt.Sprintf("%d of %d blocks ran again", again, len(e.Blocks))
}

func share(x float64) string {
	if 100*x >= 99.5 {
		return strconv.FormatFloat(100*x, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*x, 'g', 2, 64) + " %"
}

// Failures lists what failed: once for each cell, not for each response. The trials that failed by no fault of their cell
// follow: the head counts them as well.
func Failures(r *analyse.Result) *Section {
	s := &Section{ID: "failures", Title: "Failed trials"}
	list := func(cell string, reasons []analyse.Reason) {
		for _, f := range reasons {
			where := f.Kind
			if f.Phase != "" {
				where += " in " + f.Phase
			}
			s.Item(cell, fmt.Sprintf("%d, %s: %s", f.Count, where, f.Text))
		}
	}
	eachFailed(r, func(c record.Cell, reasons []analyse.Reason, gaveUp string) {
		list(c.Key(), reasons)
		if gaveUp != "" {
			s.Item(c.Key(), "given up, "+gaveUp)
		}
	})
	return s
}

// eachFailed goes over the cells with failed trials: the compared ones, each once, and then what failed by no fault of its cell.
func eachFailed(r *analyse.Result, do func(c record.Cell, reasons []analyse.Reason, gaveUp string)) {
	compared := make(map[string]bool)
	for i := range r.Compared {
		c := &r.Compared[i]
		if key := c.Cell.Key(); !compared[key] {
			compared[key] = true
			do(c.Cell, c.Failures, c.GaveUp)
		}
	}
	var others ordered.Groups[string, analyse.FailedTrial]
	for _, f := range r.Failures {
		if key := f.Cell.Key(); f.Failure.Passing() || !compared[key] {
			others.Add(key, f)
		}
	}
	for _, failed := range others.All() {
		do(failed[0].Cell, analyse.Reasons(failed), "")
	}
}

// failedShort has a line for each workload with failed trials: how many, where, and the reason of most.
func failedShort(r *analyse.Result) (out []string) {
	type part struct {
		where   string
		reasons []analyse.Reason
	}
	var workloads ordered.Groups[string, part]
	eachFailed(r, func(c record.Cell, reasons []analyse.Reason, _ string) {
		if len(reasons) > 0 {
			name, _ := c.Get(study.FactorWorkload)
			where, _ := c.Get(r.Compare)
			workloads.Add(name, part{where, reasons})
		}
	})
	for name, parts := range workloads.All() {
		n, most := 0, analyse.Reason{}
		var in []string
		for _, p := range parts {
			in = ordered.Add(in, p.where)
			for _, f := range p.reasons {
				if n += f.Count; f.Count > most.Count {
					most = f
				}
			}
		}
		of := strings.TrimSpace("of " + name)
		if len(in) == 1 && in[0] != "" {
			of += " with " + r.Compare + "=" + in[0]
		}
		out = append(out, fmt.Sprintf("%s %s failed: %s", words.Count(n, "trial"), of, most.Text))
	}
	return out
}

// Steady says where a response had not come to rest within the trials: a line for each
// response of a cell with such trials. Where all is steady, or too short to tell, there
// is nothing to do and nothing is said; --json has the counts.
func Steady(r *analyse.Result) *Section {
	s := &Section{ID: "steady", In: "failures", Title: "Within the trials"}
	for i := range r.Compared {
		c := &r.Compared[i]
		x := c.Steady
		if x == nil || x.NotSteady == 0 {
			continue
		}
		text := c.Response.Name
		if x.Why != "" {
			text += " " + x.Why
			if x.NotSteady > 1 {
				text += " (the first of them)"
			}
		}
		s.Item(fmt.Sprintf("no steady state in %d of %s of %s", x.NotSteady, words.Count(x.Trials, "trial"), c.Cell.Key()), text)
	}
	return s
}

// Warnings lists what was doubtful, but for what a section of its own tells. Those of
// these hosts follow.
func Warnings(r *analyse.Result, hosts []record.Host) *Section {
	s := &Section{ID: "warnings", Title: "Warnings"}
	for _, w := range r.Warnings {
		if w.Code == record.NoSteadyState || w.Code == analyse.WarnBusy || aside(r, w.Code) {
			continue
		}
		text := w.Text
		if w.Trials > 0 {
			text += " (" + words.Count(w.Trials, "trial")
			if n := len(w.Cells); n > 0 && n <= maxCells {
				text += ": " + strings.Join(w.Cells, "; ")
			} else if n > 0 {
				text += fmt.Sprintf(" of %d cells", n)
			}
			text += ")"
		}
		cells := ""
		if len(w.Cells) > maxCells {
			cells = strings.Join(w.Cells, "\n")
		}
		s.Fold(w.Code, text, cells)
	}
	s.Blocks = append(s.Blocks, hostWarnings(hosts)...)
	return s
}

// aside reports whether a warning is about a response that the study does not compare. Its code ends with the response.
func aside(r *analyse.Result, code string) bool {
	_, response, is := strings.Cut(code, ":")
	return is && !slices.ContainsFunc(r.Compared, func(c analyse.Comparison) bool { return c.Response.Name == response })
}

// Skips says what the host or the cluster cannot run, or of what the model knows nothing, cells of one
// reason together.
func Skips(skips []record.Skip, modelled bool) *Section {
	s := &Section{ID: "skips", In: "failures", Title: "Not possible here"}
	if modelled {
		s.Title = "What the model does not cover"
	}
	var reasons []string
	cells := make(map[string][]record.Cell)
	for _, x := range skips {
		if cells[x.Reason] == nil {
			reasons = append(reasons, x.Reason)
		}
		cells[x.Reason] = append(cells[x.Reason], x.Cell)
	}
	for _, reason := range reasons {
		s.Item(common(cells[reason], reason), reason)
	}
	return s
}

// common names cells by their levels of the factors that the reason tells the user to write. Without such factors, it names the levels that
// all cells share. It adds the workloads if there are few.
func common(cells []record.Cell, reason string) string {
	if len(cells) == 1 {
		return cells[0].Key()
	}
	var shared, told record.Cell
	for _, l := range cells[0] {
		if !strings.Contains(" "+reason, " "+l.Factor+": ") {
			continue
		}
		var levels []string
		for _, c := range cells {
			if v, ok := c.Get(l.Factor); ok {
				levels = ordered.Add(levels, v)
			}
		}
		told = append(told, record.Level{Factor: l.Factor, Value: strings.Join(levels, " or ")})
	}
	for _, l := range cells[0] {
		if !slices.ContainsFunc(cells, func(c record.Cell) bool { v, ok := c.Get(l.Factor); return !ok || v != l.Value }) {
			shared = append(shared, l)
		}
	}
	if len(told) > 0 {
		shared = told
	}
	many := words.Count(len(cells), "cell")
	var workloads []string
	for _, c := range cells {
		if w, ok := c.Get(study.FactorWorkload); ok {
			workloads = ordered.Add(workloads, w)
		}
	}
	if n := len(workloads); n > 1 && n <= 4 {
		many += " of " + words.List(workloads)
	}
	if len(shared) == 0 {
		return many
	}
	return fmt.Sprintf("%s (%s)", shared.Key(), many)
}
