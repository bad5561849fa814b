package compare

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/record"
)

// Difference is one thing that the descriptions of both sides do not have in
// common. Where several sessions of one side differ, all their values stand in
// their order with ", then " between them.
type Difference struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// Unknown stands for what a description does not have.
const Unknown = "-"

// warning begins the field of a host's warning.
const warning = "warning "

// described is a description in order: field by field, the values of one side.
type described struct {
	order  []string
	values map[string][]string
}

func (d *described) add(field, value string) {
	value = cmp.Or(value, Unknown)
	v, ok := d.values[field]
	if !ok {
		d.order = append(d.order, field)
	}
	if !slices.Contains(v, value) {
		d.values[field] = append(v, value)
	}
}

// Differences lists what the hosts, tools, runtimes and study files of two sides
// do not have in common: why a cell may have changed. It looks at all sessions of
// both.
func Differences(a, b []Folder) []Difference {
	da, db := describeSide(a), describeSide(b)
	out := []Difference{}
	fields := slices.Clone(da.order)
	for _, f := range db.order {
		if _, ok := da.values[f]; !ok {
			fields = append(fields, f)
		}
	}
	text := func(v []string) string {
		if len(v) == 0 {
			return Unknown
		}
		return strings.Join(v, ", then ")
	}
	for _, f := range fields {
		if strings.HasPrefix(f, warning) && da.values[f] != nil && db.values[f] != nil {
			continue // the same doubt in other numbers
		}
		if da.lacks(f) || db.lacks(f) {
			continue
		}
		if x, y := text(da.values[f]), text(db.values[f]); x != y {
			out = append(out, Difference{Field: f, A: x, B: y})
		}
	}
	return out
}

// lacks reports whether a field is a trait of a sandbox that a tare of before traits did not record.
func (d *described) lacks(field string) bool {
	return d.values[field] == nil && slices.ContainsFunc(record.TraitFacts(), func(end string) bool {
		role, ok := strings.CutSuffix(field, end)
		return ok && d.values[role+record.FactFamily] == nil
	})
}

func describeSide(side []Folder) *described {
	d := &described{values: make(map[string][]string)}
	for _, f := range side {
		d.folder(f)
	}
	return d
}

func (d *described) folder(s Folder) {
	machines := 0
	for i := range s.Sessions {
		d.add("tare", s.Sessions[i].TareVersion)
		for _, h := range s.Sessions[i].Hosts() {
			d.host(&h)
			machines++
		}
	}
	d.facts(s, machines)
	st := s.Study
	if st.Stop.Fixed > 0 {
		d.add("study: stop", "fixed: "+strconv.Itoa(st.Stop.Fixed))
	} else if st.Stop.Adaptive {
		d.add("study: stop", fmt.Sprintf("adaptive: %v, margin: %g", st.Stop.Looks, st.Stop.Margin))
	} else {
		d.add("study: stop", fmt.Sprintf("looks: %v, width: %g, margin: %g", st.Stop.Looks, st.Stop.Width, st.Stop.Margin))
	}
	d.add("study: confidence", strconv.FormatFloat(st.Stop.Confidence, 'g', -1, 64))
	d.add("study: collect", fmt.Sprintf("%s every %v", strings.Join(st.Collect.Names, " "), st.Collect.Interval))
	for _, b := range st.Sandboxes {
		d.add("study: sandbox "+b.Name, b.String())
	}
}

func (d *described) host(h *record.Host) {
	d.add("hostname", h.Hostname)
	d.add("os", h.OS)
	d.add("kernel", h.Kernel)
	d.add("arch", h.Arch)
	d.add("cpu model", h.CPUModel)
	d.add("sockets", number(h.Sockets))
	d.add("cores", number(h.Cores))
	d.add("threads", number(h.Threads))
	memory := ""
	if h.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.1f GiB", float64(h.MemoryBytes)/(1<<30))
	}
	d.add("memory", memory)
	d.add("governor", h.Governor)
	d.add("clocksource", h.Clocksource)
	d.add("virtualization", h.Virtualization)
	d.add("kvm", h.KVM)
	d.add("cgroups", h.Cgroups)
	for _, k := range slices.Sorted(maps.Keys(h.Mitigations)) {
		d.add("mitigation "+k, h.Mitigations[k])
	}
	for _, k := range slices.Sorted(maps.Keys(h.Tools)) {
		d.add("tool "+k, h.Tools[k])
	}
	for _, w := range h.Warnings {
		d.add(warning+w.Code, w.Text)
	}
}

// facts are what the trials say of the sandboxes that they ran in. Those that
// are other in each trial describe none of them.
func (d *described) facts(s Folder, machines int) {
	trials := slices.Clone(s.Trials)
	slices.SortStableFunc(trials, func(a, b record.Trial) int { return a.Seq - b.Seq })
	own := &described{values: make(map[string][]string)}
	for i := range trials {
		level, _ := trials[i].Cell.Get(s.Study.Compare)
		for _, k := range slices.Sorted(maps.Keys(trials[i].Facts)) {
			if k == record.FactPod || strings.HasSuffix(k, "."+record.FactPod) { // another one in each trial, however few there are
				continue
			}
			own.add(s.Study.Compare+"="+level+": "+k, fact(k, trials[i].Facts[k]))
		}
	}
	slices.Sort(own.order)
	for _, f := range own.order {
		if v := own.values[f]; len(v) <= max(1, machines) {
			for _, x := range v {
				d.add(f, x)
			}
		}
	}
}

// fact is the part of a fact that is compared. A collector tells its way of
// reading, and after a colon why no better one: the causes of one way may be
// worded in many. A started sandbox tells its runtime's path, a launched one its name.
func fact(name, value string) string {
	switch {
	case strings.HasPrefix(name, "collector."):
		value, _, _ = strings.Cut(value, ": ")
	case strings.HasSuffix(name, record.FactSandboxRuntime):
		value = path.Base(value)
	}
	return value
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Began is when a result's first session began; zero without sessions.
func (s Folder) Began() time.Time {
	var t time.Time
	for i := range s.Sessions {
		if x := s.Sessions[i].Started; t.IsZero() || x.Before(t) {
			t = x
		}
	}
	return t
}
