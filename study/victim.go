package study

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"tare/ordered"
	"tare/param"
	"tare/record"
)

// Victim is a workload that runs beside the load of each trial, in sandboxes of its own, and has
// responses of its own (docs/design/0042-victim.md).
type Victim struct {
	Workload Workload    // its Responses are those compared, with record.VictimPrefix
	Levels   record.Cell // what the study says of its sandboxes: sandbox, isolate, limits, cpus

	all []record.Response // of the workload, with record.VictimPrefix
}

// VictimLabel is the victim's level of the factor "workload", in the cell that it resolves as.
const VictimLabel = "victim"

// The factors of a study with a victim.
const (
	FactorBeside        = "beside"
	FactorVictimSandbox = "victim-sandbox"
)

// Levels of FactorBeside.
const (
	BesideNothing = "nothing" // the victim alone
	BesideLoad    = "load"
)

// Alone reports whether the victim has nothing beside it in a cell.
func Alone(c record.Cell) bool {
	v, ok := c.Get(FactorBeside)
	return ok && v == BesideNothing
}

// victimLevels are the keys of the section that are factors of any other workload.
func victimLevels() []string {
	return []string{FactorSandbox, FactorIsolate, FactorCPULimit, FactorMemoryLimit, FactorCPUs}
}

// victim reads the section. It comes before the factors, which may be about it.
func (d *draft) victim(p pair) {
	if p.key == nil {
		return
	}
	d.hasVictim = true
	body := d.mapping(p.val, "victim")
	kind := find(p.val, "kind")
	name, ok := d.text(kind, "kind")
	if !ok {
		if kind == nil {
			d.bad(p.key, "write victim: {kind: net, mode: rr}", "the victim has no kind")
		}
		return
	}
	info, known := d.cat.Workloads[name]
	switch {
	case !known:
		d.bad(kind, param.Suggest(name, sortedKeys(d.cat.Workloads)), "there is no kind of workload %q", name)
		return
	case info.Launches:
		d.bad(kind, "choose one that serves or measures while it runs, such as net or http.nginx", "workload kind %s starts its sandboxes itself, so it cannot be a victim", name)
		return
	}
	v := &Victim{Workload: Workload{Label: VictimLabel, Kind: name, Params: param.Values{}, Line: p.key.Line}}
	w := &load{label: VictimLabel, at: p.key, kind: name, info: info, params: map[string]*yaml.Node{}, fixed: v.Workload.Params}
	before := len(d.errs)
	for _, q := range body {
		d.victimKey(v, w, q)
	}
	if len(d.errs) > before {
		return
	}
	d.study.Victim = v
	d.fillVictim(v, w)
}

// victimKey reads one key of the section.
func (d *draft) victimKey(v *Victim, w *load, q pair) {
	name := q.key.Value
	pr, of := param.Find(w.info.Params, name)
	switch {
	case name == "kind":
		return
	case name == "responses":
		w.responses, w.asked = d.words(q.val, name)
		if len(w.responses) == 0 {
			d.bad(q.key, "name at least one, or remove the key to have all", "responses is empty")
		}
		return
	case of:
		w.params[name] = q.val
	case slices.Contains(victimLevels(), name):
		if name == FactorSandbox {
			pr = d.sandboxParam()
		} else {
			pr, _ = param.Find(Factors(), name)
		}
	default:
		d.bad(q.key, param.Suggest(name, slices.Concat(param.Names(w.info.Params), victimLevels(), []string{"kind", "responses"})), "workload kind %s has no parameter %q", w.kind, name)
		return
	}
	if !of && name == FactorIsolate && w.info.Endpoints < 2 {
		d.bad(q.key, "remove it", "workload kind %s has one end, so there is nothing to isolate apart", w.kind)
		return
	}
	if !empty(q.val) && len(q.val.Content) > 0 {
		instead := "write one value"
		if name == FactorSandbox {
			instead = "write factors: {" + FactorVictimSandbox + ": [...]}"
		}
		d.bad(q.val, instead, "the victim is the same in each trial, and %s is a list or a mapping", name)
		return
	}
	t, ok := d.level(q.val, name, []param.Param{pr})
	switch {
	case !ok:
	case of:
		w.fixed[name] = t
	default:
		v.Levels = append(v.Levels, record.Level{Factor: name, Value: t})
	}
}

// fillVictim checks the parameters together, and finds the responses.
func (d *draft) fillVictim(v *Victim, w *load) {
	values, err := w.values(d.study, nil)
	if err == nil && w.info.Check != nil {
		err = w.info.Check(values)
	}
	if err != nil {
		if !d.inFile(w, nil, err) {
			d.refuse(d.valueAt(w, nil, err), "the victim is not possible: ", err, "change it")
		}
		return
	}
	if w.info.Notes != nil {
		for _, n := range w.info.Notes(values) {
			d.study.Notes = append(d.study.Notes, d.placed(w, nil, &n).Error())
		}
	}
	var all []record.Response
	if w.info.Responses != nil {
		all = w.info.Responses(values)
	}
	if len(all) == 0 {
		d.bad(w.at, "choose another kind", "workload kind %s has no responses to compare", w.kind)
		return
	}
	names := w.responses
	if w.asked == nil {
		names = compared(all)
	}
	every := make([]string, len(all))
	for i, r := range all {
		every[i] = r.Name
	}
	for i, name := range names {
		if !slices.Contains(every, name) {
			d.bad(w.asked[i], param.Suggest(name, every), "the victim has no response %q", name)
			continue
		}
		v.Workload.Responses = append(v.Workload.Responses, record.VictimPrefix+name)
	}
	v.all = record.Victim(all)
}

// victimRows adds the victim's responses to those that each workload compares, behind its own.
func (d *draft) victimRows() {
	if d.study.Victim == nil {
		return
	}
	for _, w := range d.loads {
		w.responses = slices.Clip(w.responses)
		for _, name := range d.study.Victim.Workload.Responses {
			w.responses = ordered.Add(w.responses, name)
		}
	}
}

// ofVictim refuses factors that are about a victim where there is none.
func (d *draft) ofVictim(q pair) {
	if name := q.key.Value; (name == FactorBeside || name == FactorVictimSandbox) && !d.hasVictim {
		d.bad(q.key, "add victim: {kind: net, mode: rr}, or remove the factor", "%s is about a victim, and this study has none", name)
	}
}

// ResponsesOf are the responses of a workload of this study, as WorkloadOf returns it, and those of
// the victim. v are the workload's parameters.
func (s *Study) ResponsesOf(info WorkloadInfo, w Workload, v param.Values) []record.Response {
	return slices.Concat(info.responsesIn(v, record.Cell{{Factor: FactorCopies, Value: w.Params[FactorCopies]}}), s.victimResponses())
}

// victimResponses are those of the victim, compared or not.
func (s *Study) victimResponses() []record.Response {
	if s.Victim == nil {
		return nil
	}
	return s.Victim.all
}

// responsesIn are the responses that all of the cells have: those of the workload with parameters v,
// unless the victim is alone in one of them, and those of the victim.
func (s *Study) responsesIn(info WorkloadInfo, v param.Values, cells ...record.Cell) []record.Response {
	if slices.ContainsFunc(cells, Alone) {
		return s.victimResponses()
	}
	return slices.Concat(info.responsesIn(v, cells...), s.victimResponses())
}

// victimOf resolves the victim of a cell; nil if it has none. A counting trial has none: it counts the
// calls of the load.
func (s *Study) victimOf(cat Catalogue, cell record.Cell) (*Resolved, error) {
	if s.Victim == nil || IsCounting(cell) || s.Sentinel != nil && cell.Key() == s.Sentinel.Cell.Key() {
		return nil, nil //nolint:nilnil // there is none
	}
	own := record.Cell{{Factor: FactorWorkload, Value: VictimLabel}}
	own = append(own, s.Victim.Levels...)
	if box, ok := cell.Get(FactorVictimSandbox); ok {
		own = append(own.Without(FactorSandbox), record.Level{Factor: FactorSandbox, Value: box})
	}
	out, err := s.resolve(cat, s.Victim.Workload, own)
	return &out, err
}

// String says what the victim is in a line.
func (v *Victim) String() string {
	parts := []string{v.Workload.Kind}
	for _, name := range sortedKeys(v.Workload.Params) {
		parts = append(parts, name+"="+v.Workload.Params[name])
	}
	var levels []string
	for _, l := range v.Levels {
		levels = append(levels, l.Factor+" "+l.Value)
	}
	if len(levels) > 0 {
		parts = append(parts, "with "+strings.Join(levels, ", "))
	}
	return strings.Join(parts, " ")
}

func victimSchema(cat Catalogue) *jsonschema.Schema {
	shared := map[string]param.Param{}
	for _, p := range Factors() {
		shared[p.Name] = p
	}
	names := slices.DeleteFunc(sortedKeys(cat.Workloads), func(k string) bool { return cat.Workloads[k].Launches })
	own := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"kind": words(names)}, Required: []string{"kind"},
		Description: "A workload that runs beside the load of each trial, in a sandbox of its own, with responses that are called victim_NAME."}
	for _, k := range names {
		ps := props{{"kind", words([]string{k})},
			{"responses", oneOrMore(text("A response of the victim to compare."))},
			{FactorSandbox, text("The sandbox that the victim runs in. Default: " + cat.Native + ".")}}
		for _, name := range victimLevels()[1:] {
			if name != FactorIsolate || cat.Workloads[k].Endpoints > 1 {
				ps = append(ps, prop{name, value(shared[name])})
			}
		}
		for _, p := range cat.Workloads[k].Params {
			ps = slices.DeleteFunc(ps, func(q prop) bool { return q.name == p.Name })
			ps = append(ps, prop{p.Name, value(p)})
		}
		is := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"kind": words([]string{k})}, Required: []string{"kind"}}
		own.AllOf = append(own.AllOf, &jsonschema.Schema{If: is, Then: object("", ps)})
	}
	return own
}
