package section

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/analyse/structural"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
)

// CPUCosts says what CPU time a unit of work costs: a row for each stratum.
func CPUCosts(r *analyse.Result) *Section {
	s := &Section{ID: "cpucost", In: "cpucost", Title: "CPU time per unit of work"}
	if len(r.CPUCosts) == 0 {
		return s
	}
	s.About = source(r.CPUCosts[0].Source)
	names, col := treatments(r)
	t := NewTable(2, append([]string{"work", "unit"}, names...)...)
	t.All = "--csv --cpu"
	fixed := fixedLevels(r)
	at := make(map[string]int)
	for i := range r.CPUCosts {
		c := &r.CPUCosts[i]
		k, ok := at[c.Stratum]
		if !ok {
			k = len(t.Rows)
			at[c.Stratum] = k
			t.Row(words.Stratum(r, c.Workload, c.Shared, fixed), c.Unit)
		}
		if j, ok := col[c.Treatment]; ok {
			t.Rows[k][2+j] = costCell(c)
		}
	}
	s.Table(t)
	what := words.Base(r) + ": CPU time per unit; others: ratio to it in the same block and its interval."
	if !slices.ContainsFunc(r.CPUCosts, func(c cpucost.Cost) bool { return c.Baseline }) {
		what = "CPU time per unit of the load's work."
	}
	s.Note(what + " Included are " + words.CountedEndpoints(r) +
		", each with everything that the sandbox runs for it on the host, but not tare's agent or the other side.")
	for _, c := range words.CPUCosts(r) {
		s.Item("", c)
	}
	var missing groups
	all := NewTable(2, "work", "in", "CPU", "ratio", "cores", "rate", "trials", "by role")
	all.Wide = "CPU time of each cell"
	for i := range r.CPUCosts {
		c := &r.CPUCosts[i]
		work, in := words.Stratum(r, c.Workload, c.Shared, fixed), words.TreatmentOf(r, c.Treatment)
		if c.Missing != "" {
			missing.add(c.Missing, work+" "+in)
			continue
		}
		var roles []string
		for _, x := range c.Roles {
			roles = append(roles, x.Role+" "+percentOf(x.Part))
		}
		row := all.Row(work, in, words.Value(c.Value, record.Second)+" a "+c.Unit, "-", bare(c.Cores), words.Value(c.Rate, c.Response.Shown()), strconv.Itoa(c.Trials), strings.Join(roles, ", "))
		if c.Baseline {
			row[3].First = "baseline"
		} else if c.Estimate.N > 0 && c.Estimate.Undefined == "" {
			row[3] = costCell(c)
		}
	}
	s.Table(all)
	for _, why := range missing.names {
		s.Item(someOf(missing.members[why], len(r.CPUCosts)), why)
	}
	return s
}

// source says where the CPU time is read.
func source(from string) string {
	if from == cpucost.FromCgroup {
		return "control groups"
	}
	return "threads by role"
}

func costCell(c *cpucost.Cost) Cell {
	if e := &c.Estimate; c.Baseline || e.N == 0 || e.Undefined != "" {
		return Cell{First: words.Value(c.Value, record.Second)}
	}
	return ratioCell(&c.Estimate, c.Estimate.Shown(c.Verdict, record.Lower))
}

// Quotas says what the endpoints with a CPU quota used of it, by role, and how often it held
// them back.
func Quotas(r *analyse.Result) *Section {
	s := &Section{ID: "quota", Title: "CPU against the quota, in cores"}
	if len(r.Quotas) == 0 {
		return s
	}
	s.About = source(r.Quotas[0].Source)
	t := NewTable(2, "work", "in", "quota", "CPU", "throttled", "held back", "trials")
	t.Grouped, t.All = true, "--json"
	t.Columns[6].Wide = true
	var roles []string
	for i := range r.Quotas {
		for _, x := range r.Quotas[i].Roles {
			if x.Part >= 0.005 && !slices.Contains(roles, x.Role) {
				roles = append(roles, x.Role)
			}
		}
	}
	slices.Sort(roles)
	t.Add(roles...)
	fixed := fixedLevels(r)
	for i := range r.Quotas {
		q := &r.Quotas[i]
		throttled, held := "-", "-"
		if !q.Unread {
			throttled, held = words.Value(q.Throttled, record.Fraction), words.Value(q.Time, record.Second)+"/s"
		}
		used, share := "-", ""
		if q.Cores > 0 {
			used, share = bare(q.Cores), percentOf(q.Used())
		}
		cells := []string{quotaEndpoint(q, words.Stratum(r, q.Workload, q.Shared, fixed)), words.TreatmentOf(r, q.Treatment), bare(q.Quota), used, throttled, held, strconv.Itoa(q.Trials)}
		for _, role := range roles {
			cells = append(cells, written(q.Roles, func(x cpucost.Role) bool { return x.Role == role }, func(x cpucost.Role) string { return bare(x.Cores) }))
		}
		t.Row(cells...)[3].Second = share
	}
	s.Table(t)
	s.Note(words.QuotasAbout)
	return s
}

// quotaEndpoint names an endpoint of a stratum; one called main has no name of its own.
func quotaEndpoint(q *cpucost.Quota, stratum string) string {
	if q.Endpoint == "" || q.Endpoint == "main" {
		return stratum
	}
	return stratum + " " + q.Endpoint
}

// bare is a number of cores without its unit.
func bare(cores float64) string {
	return strings.TrimSuffix(words.Value(cores, record.Cores), " cores")
}

// Structural says how much of each cost system calls explain.
func Structural(r *analyse.Result) *Section {
	s := &Section{ID: "structural", In: "structural", Title: "Structural cost", About: "system calls × what the sandbox adds to an empty call"}
	fixed := fixedLevels(r)
	t := NewTable(2, "an operation of", "in", "native", "extra", "calls", "a call", "explained", "rest", "part",
		"extra, interval", "explained, interval", "calls' own work", "calls at once", "finding", "most frequent calls")
	t.Grouped = true
	for i := 9; i < len(t.Columns); i++ {
		t.Columns[i].Wide = true
	}
	var missing groups
	untold := 0
	for i := range r.Structural {
		x := &r.Structural[i]
		name := words.Stratum(r, x.Workload, x.Shared, fixed)
		if x.Missing != "" {
			missing.add(x.Missing, name)
			continue
		}
		row := t.Row(shareCells(x)...)
		row[0].First, row[1].First = name+" ("+x.Operation+")", words.TreatmentOf(r, x.Treatment)
		if x.Finding == structural.NoExtra {
			untold++
			row[0].Wide = true
		}
	}
	if len(t.Rows) > 0 {
		s.Table(t)
	}
	if len(t.Rows) > untold {
		s.Note("Times are for one operation. extra: more than natively; calls: system calls of the isolated side, counted natively; a call: what getpid takes more in the sandbox; " +
			"explained: calls × a call, divided by the processors that make them; rest: extra minus explained, due to the implementation; part: explained / extra. " +
			"A negative rest (part over 100 %) means that calls overlap with other work, or that the sandbox makes fewer.")
	}
	if untold > 0 {
		s.Item("", fmt.Sprintf("%d of %d have no extra time that differs from zero; --json has them", untold, len(t.Rows)))
	}
	for _, why := range missing.names {
		s.Item(someOf(missing.members[why], len(missing.members[why])), why)
	}
	return s
}

// shareCells are the cells of a share, the first two empty.
func shareCells(x *structural.Share) []string {
	seconds := func(v float64) string { return words.Value(v, record.Second) }
	span := func(f structural.Figure) string {
		if f.Lo == 0 && f.Hi == 0 {
			return "-"
		}
		return seconds(f.Lo) + " to " + seconds(f.Hi)
	}
	part, own := "-", "-"
	if p, ok := x.Part(); ok {
		part = percentOf(p)
	}
	if x.Priced > 0 {
		own = seconds(x.OfCalls)
	}
	var top []string
	for _, c := range x.Top[:min(len(x.Top), 4)] {
		top = append(top, c.Name+" "+words.PerOperation(c.PerOperation))
	}
	return []string{"", "", seconds(x.Native), seconds(x.Extra.Value), words.PerOperation(x.Calls), seconds(x.Cost.Value), seconds(x.Explained.Value), seconds(x.Rest), part,
		span(x.Extra), span(x.Explained), own, words.PerOperation(x.Parallelism), string(x.Finding), strings.Join(top, ", ")}
}

// Boots shows the steps of the sandboxes' starts.
func Boots(r *analyse.Result) *Section {
	s := &Section{ID: "boots", In: "boots", Title: "Steps of a sandbox's start", About: "medians, and their 95 % intervals; all: the whole start, with what is in no step"}
	if len(r.Boots) == 0 {
		return s
	}
	columns := []string{"in", "starts", "all"}
	cold := slices.ContainsFunc(r.Boots, func(x analyse.Boot) bool { return x.Pulled > 0 })
	if cold {
		columns = append(columns, "pulled")
		s.About += "; pulled: the size of the image that the node pulled for each start, as the node reports it"
	}
	t := NewTable(1, columns...)
	image := func(text string) []string { return []string{text}[:len(columns)-3] }
	var steps [][]analyse.PhaseTime
	for _, x := range r.Boots {
		steps = append(steps, x.Phases)
	}
	phases := t.phases(steps)
	for _, x := range r.Boots {
		size := "-"
		if x.Pulled > 0 {
			size = words.Value(x.Pulled, record.Byte)
		}
		t.Row(slices.Concat([]string{words.Boot(r, &x), strconv.Itoa(x.Starts), span(x.Start, x.Starts > 0)}, image(size), times(phases, x.Phases))...)
		if x.Hi > 0 {
			t.Row(slices.Concat([]string{"", "95 %", between(x.Lo, x.Hi)}, image(""), intervals(phases, x.Phases))...)
		}
	}
	fine, poll := fineness(phases, r.Boots)
	if fine != nil {
		t.Row(slices.Concat([]string{"known to", "", ""}, image(""), fine)...)
		t.Row(slices.Concat([]string{"kubelet's poll", "", ""}, image(""), poll)...)
	}
	s.Table(t)
	if cold {
		s.Note("A node pulls one image after another, unless serializeImagePulls of its kubelet is off. So with a burst, pull includes the wait for the other pulls. With containerd, the size is that of the compressed layers.")
	}
	if fine != nil { // of pods
		s.Note("The scheduler's and the kubelet's steps end when their events arrive at the coordinator, a few milliseconds late. A kubelet looks every 300 ms whether a new pod's volumes are there, and every second whether its containers run. So sandbox takes at least 300 ms in any runtime, and ready up to a second longer than the pod needs. A trial of startup counts with its medians.")
	}
	return s
}

// Overheads shows what measuring costs beside the workloads.
func Overheads(r *analyse.Result) *Section {
	s := &Section{ID: "cost", Title: "What measuring costs", About: "medians; noop: a whole trial that does nothing; CPU of one core"}
	if len(r.Overheads) == 0 {
		return s
	}
	t := NewTable(1, r.Compare, "trials", "trial", "noop")
	var steps [][]analyse.PhaseTime
	var collectors []string
	for _, o := range r.Overheads {
		steps = append(steps, o.Phases)
		for _, c := range o.Collectors {
			collectors = ordered.Add(collectors, c.Name)
		}
	}
	phases := t.phases(steps)
	for _, c := range collectors {
		t.Add(c + " CPU")
	}
	turns := slices.ContainsFunc(r.Overheads, func(o analyse.Overhead) bool { return o.Idle != nil })
	if turns {
		t.Add("idle CPU")
		s.About += "; idle CPU: what a sandbox uses between its turns, while others are measured"
	}
	guests := slices.ContainsFunc(r.Overheads, func(o analyse.Overhead) bool { return o.Agent != nil })
	if guests {
		t.Add("agent in guest")
		s.About += ", on the host, except for the agent in a guest, which the guest counts"
	}
	for _, o := range r.Overheads {
		row := append([]string{r.LevelName(record.Level{Factor: r.Compare, Value: o.Sandbox}), strconv.Itoa(o.Trials), span(o.Trial, true), span(o.Noop, o.NoopTrials > 0)}, times(phases, o.Phases)...)
		for _, name := range collectors {
			row = append(row, written(o.Collectors, func(c analyse.CollectorCost) bool { return c.Name == name }, func(c analyse.CollectorCost) string { return words.Value(c.Cores, record.Fraction) }))
		}
		switch {
		case o.Idle != nil:
			row = append(row, words.Value(*o.Idle, record.Fraction))
		case turns:
			row = append(row, "-")
		}
		switch {
		case o.Agent != nil:
			row = append(row, words.Value(*o.Agent, record.Fraction))
		case guests:
			row = append(row, "-")
		}
		t.Row(row...)
	}
	s.Table(t)
	return s
}

// phases adds a column for each phase that occurs, and names them.
func (t *Table) phases(lists [][]analyse.PhaseTime) []string {
	var out []string
	for _, list := range lists {
		for _, p := range list {
			out = ordered.Add(out, p.Name)
		}
	}
	t.Add(out...)
	return out
}

// times are the cells of these phases.
func times(names []string, list []analyse.PhaseTime) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = written(list, func(p analyse.PhaseTime) bool { return p.Name == name }, func(p analyse.PhaseTime) string { return span(p.Median, true) })
	}
	return out
}

// intervals are the cells of these phases' intervals.
func intervals(names []string, list []analyse.PhaseTime) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = written(list, func(p analyse.PhaseTime) bool { return p.Name == name && p.Hi > 0 }, func(p analyse.PhaseTime) string { return between(p.Lo, p.Hi) })
	}
	return out
}

// fineness is the cells of how fine these phases are known, and how often a kubelet looks; nil if nobody says.
func fineness(names []string, boots []analyse.Boot) (fine, poll []string) {
	fine, poll = make([]string, len(names)), make([]string, len(names))
	said := false
	for i, name := range names {
		fine[i], poll[i] = "-", "-"
		for _, b := range boots {
			for _, p := range b.Phases {
				if p.Name == name && p.Fine > 0 {
					said, fine[i], poll[i] = true, span(p.Fine, true), span(p.Poll, p.Poll > 0)
				}
			}
		}
	}
	if !said {
		return nil, nil
	}
	return fine, poll
}

// between writes an interval, with its unit once where both ends have the same.
func between(lo, hi time.Duration) string {
	from, to := span(lo, true), span(hi, true)
	if value, unit, ok := strings.Cut(from, " "); ok && strings.HasSuffix(to, " "+unit) {
		from = value
	}
	return from + "–" + to
}

// written writes the one of a list that is meant; "-" if there is none.
func written[T any](list []T, is func(T) bool, write func(T) string) string {
	if k := slices.IndexFunc(list, is); k >= 0 {
		return write(list[k])
	}
	return "-"
}

func span(d time.Duration, known bool) string {
	if !known {
		return "-"
	}
	return words.Value(d.Seconds(), record.Second)
}
