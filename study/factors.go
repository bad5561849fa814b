package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// class says whose a factor is.
type class int

const (
	ofTare class = iota // isolate, the limits
	ofWorkload
	ofSandbox
	isSandbox  // the factor "sandbox"
	isWorkload // the factor "workload"
)

// factor is a factor while it is read.
type factor struct {
	name   string
	at     *yaml.Node
	class  class
	levels []string              // all, in the order of their first mention
	spelt  map[string]string     // canonical form of a level to its first spelling
	places map[string]*yaml.Node // of the levels, as first spelt
	base   []string              // levels of the section factors: of every workload without its own
	conds  []condition           // all must hold for the factor to apply
	treats bool                  // distinguishes cells within a stratum
	used   bool
	stores bool // has an effect only on workloads that keep something on a disk
}

// condition holds where another factor has one of some levels.
type condition struct {
	factor int
	levels []string
}

// load is one workload while it is read.
type load struct {
	label     string
	at        *yaml.Node
	kind      string
	info      WorkloadInfo
	params    map[string]*yaml.Node // as written, responses and kind apart
	fixed     param.Values
	own       map[int][]string // levels that this workload gives a factor itself
	responses []string
	pace      pace
	asked     []*yaml.Node // the nodes of responses; nil when the study leaves them to the workload
	checked   map[string]bool
}

func (w *load) has(name string) bool {
	_, ok := param.Find(w.info.Params, name)
	return ok
}

// workloads reads the section's keys and what is fixed; lists become factors in
// ownFactors, when the factors of the study are known.
func (d *draft) workloads(root *yaml.Node, p pair) {
	pairs := d.mapping(p.val, "workloads")
	if len(pairs) == 0 {
		at := p.key
		if at == nil {
			at = root
		}
		d.bad(at, "write workloads: {NAME: {kind: KIND}} with one of "+strings.Join(sortedKeys(d.cat.Workloads), ", "), "the study has no workloads")
	}
	for _, p := range d.entries(pairs, "workloads") {
		w := &load{label: p.key.Value, at: p.key, params: map[string]*yaml.Node{}, fixed: param.Values{},
			own: map[int][]string{}, checked: map[string]bool{}}
		if !labelPattern.MatchString(w.label) || len(w.label) > maxLabel {
			d.bad(p.key, "write letters, digits, -, _ and . between them, at most 63", "%q is not a name for a workload", w.label)
			continue
		}
		body := d.mapping(p.val, "workload "+w.label)
		at := p.key
		w.kind = w.label
		for _, q := range body {
			if q.key.Value == "kind" {
				w.kind, _ = d.text(q.val, "kind")
				at = q.val
			}
		}
		info, ok := d.cat.Workloads[w.kind]
		if !ok {
			if at != p.key || len(d.cat.Workloads) == 0 {
				d.bad(at, param.Suggest(w.kind, sortedKeys(d.cat.Workloads)), "there is no kind of workload %q", w.kind)
			} else {
				d.bad(at, "write kind: and one of "+strings.Join(sortedKeys(d.cat.Workloads), ", "), "workload %q has no kind", w.label)
			}
			continue
		}
		w.info = info
		for _, q := range body {
			d.workloadKey(w, q)
		}
		d.loads = append(d.loads, w)
	}
}

func (d *draft) workloadKey(w *load, q pair) {
	name := q.key.Value
	switch name {
	case "kind":
		return
	case "turns":
		d.paceOf(q.val, &w.pace)
		return
	case "responses":
		w.responses, w.asked = d.words(q.val, "responses")
		if len(w.responses) == 0 {
			d.bad(q.key, "name at least one, or remove the key to have all", "responses is empty")
		}
		return
	}
	pr, ok := param.Find(w.info.Params, name)
	if !ok {
		d.bad(q.key, param.Suggest(name, slices.Concat(param.Names(w.info.Params), workloadKeys())), "workload kind %s has no parameter %q", w.kind, name)
		return
	}
	w.params[name] = q.val
	if q.val.Kind == yaml.SequenceNode {
		return
	}
	if t, ok := d.level(q.val, name, []param.Param{pr}); ok {
		w.fixed[name] = t
	}
}

// level reads one level that must suit every one of ps.
func (d *draft) level(n *yaml.Node, where string, ps []param.Param) (string, bool) {
	t, ok := d.text(n, where)
	if !ok {
		return "", false
	}
	t = strings.TrimSpace(t)
	for _, p := range ps {
		c, err := p.Check(t)
		if err == nil {
			t = c
			continue
		}
		if p.Name == FactorSandbox && d.refused[t] {
			return "", false // the error of its definition says what is wrong
		}
		if p.Name == FactorSandbox && d.cat.Lacks != nil {
			what, instead := d.cat.Lacks(t)
			d.bad(n, instead, "%s", what)
			d.relaxed = true // without that level, entries that are meant for it are not mistakes
		} else if p.Type == param.Enum {
			d.bad(n, param.Suggest(t, p.Words), "%q is not a level of %s", t, p.Name)
		} else {
			prefix := p.Name + ": "
			if strings.HasPrefix(err.Error(), p.Name) {
				prefix = ""
			}
			d.refuse(n, prefix, err, "write another value")
		}
		return "", false
	}
	for _, p := range ps {
		if p.Type == param.File && !d.fileOf(n, p, t) {
			return "", false
		}
		if p.Name == FactorCopiesOn && t == CopiesSpread && !d.cat.Nodes && !d.cat.Stored {
			d.bad(n, "write "+copiesOnOne+", or measure on a cluster (--on k8s)", "copies-on: %s needs the nodes of a cluster, and this is one host", t)
			return "", false
		}
	}
	return t, true
}

// canonical makes two spellings of one level equal: 1KiB and 1024B.
func canonical(ps []param.Param, text string) string {
	if len(ps) == 0 {
		return text
	}
	if slices.Contains(ps[0].Words, text) {
		if ps[0].Type != param.Int || text != "none" || ps[0].Min > 0 {
			return text
		}
		text = "0" // which param.Values.Int reads it as
	}
	switch ps[0].Type {
	case param.Int, param.Float:
		if c, err := ps[0].Check(text); err == nil && ps[0].Milli {
			text = c
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return fmt.Sprintf("number %g", v)
		}
	case param.Size:
		if v, err := param.ParseSize(text); err == nil {
			return fmt.Sprintf("%d bytes", v)
		}
	case param.Duration:
		if v, err := param.ParseDuration(text); err == nil {
			return v.String()
		}
	case param.Rate:
		if v, err := param.ParseRate(text); err == nil {
			return fmt.Sprintf("%d bytes a second", v)
		}
	case param.CPUs:
		if v, err := param.ParseCPUs(text); err == nil {
			return fmt.Sprint(v)
		}
	}
	return text
}

// spell returns the spelling of a level that the study used first, and enters
// the level if it is new.
func (f *factor) spell(ps []param.Param, text string) string {
	c := canonical(ps, text)
	if s, ok := f.spelt[c]; ok {
		return s
	}
	f.spelt[c] = text
	f.levels = append(f.levels, text)
	return text
}

// levelsOf reads a list of levels, each once.
func (d *draft) levelsOf(f *factor, n *yaml.Node, ps []param.Param) []string {
	var out []string
	written := map[string]string{}
	for _, e := range d.list(n, f.name) {
		t, ok := d.level(e, f.name, ps)
		if !ok {
			continue
		}
		c := canonical(ps, t)
		if first, dup := written[c]; dup {
			if first == t {
				d.bad(e, "remove one", "level %q of %s is there twice", t, f.name)
			} else {
				d.bad(e, "remove one", "level %q of %s is the same as %q", t, f.name, first)
			}
			continue
		}
		written[c] = t
		t = f.spell(ps, t)
		if f.places[t] == nil {
			f.places[t] = e
		}
		out = append(out, t)
	}
	if len(d.list(n, f.name)) == 0 {
		d.bad(n, "write a list: [a, b]", "%s has no levels", f.name)
	}
	return out
}

// add enters a factor; a second one of the same name is the first.
func (d *draft) add(name string, at *yaml.Node, c class) int {
	if i, ok := d.index[name]; ok {
		return i
	}
	d.index[name] = len(d.factors)
	d.factors = append(d.factors, &factor{name: name, at: at, class: c, spelt: map[string]string{}, places: map[string]*yaml.Node{}})
	return len(d.factors) - 1
}

// classOf says whose a factor name is.
func (d *draft) classOf(name string) (class, bool) {
	if name == FactorSandbox {
		return isSandbox, true
	}
	if _, ok := param.Find(Factors(), name); ok {
		return ofTare, true
	}
	for _, w := range d.cat.Workloads {
		if _, ok := param.Find(w.Params, name); ok {
			return ofWorkload, true
		}
	}
	if len(d.owners(name, d.kinds())) > 0 {
		return ofSandbox, true
	}
	if _, ok := param.Find(d.cat.Elsewhere, name); ok {
		return ofSandbox, true
	}
	return 0, false
}

// paramsOf returns what a level of the factor must suit: the parameter of every
// one of loads, or of every kind of sandbox in the study, that has it.
func (d *draft) paramsOf(f *factor, loads []*load) []param.Param {
	var out []param.Param
	switch f.class {
	case ofTare:
		p, _ := param.Find(Factors(), f.name)
		if f.name == FactorVictimSandbox {
			p = d.sandboxParam()
		}
		out = append(out, p)
	case isSandbox:
		out = append(out, d.sandboxParam())
	case isWorkload:
		p := param.Param{Name: FactorWorkload, Type: param.Enum}
		for _, w := range d.loads {
			p.Words = append(p.Words, w.label)
		}
		out = append(out, p)
	case ofWorkload:
		for _, w := range loads {
			if p, ok := param.Find(w.info.Params, f.name); ok {
				out = append(out, p)
			}
		}
	case ofSandbox:
		for _, k := range d.sandboxLevels() {
			if p, ok := param.Find(d.study.sandbox(d.cat, k).Params, f.name); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

// sandboxParam is what a sandbox's name must suit.
func (d *draft) sandboxParam() param.Param {
	p := param.Param{Name: FactorSandbox, Type: param.Enum, Words: d.kinds()}
	if d.cat.Stored || d.cat.Others != nil {
		p.Type = param.String
	}
	return p
}

func (d *draft) sandboxLevels() []string { return d.factors[d.sandbox].levels }
