package study

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/record"
)

// Sentinel is one fixed workload, run natively and without limits between the
// blocks of a study, to see whether the machine itself changes. It is compared
// with nothing. docs/design/0005-epochs.md has the reasons.
type Sentinel struct {
	Cell     record.Cell // workload=sentinel,sandbox=process; in no stratum
	Workload Workload    // its first response is watched
	Every    int         // blocks from one to the next; 0: as often as Share allows
	Share    float64     // of the study's measuring time that all of them may take
}

// SentinelLabel is the sentinel's level of the factor "workload".
const SentinelLabel = "sentinel"

// What the sentinel is unless the study says otherwise: the quietest of the
// candidates that still feels the processor's frequency, its caches and memory,
// and the way through the kernel (docs/design/0005-epochs.md has the scatter of
// each), at a cost that nobody notices.
const (
	sentinelKind  = "syscall"
	sentinelShare = 0.03
)

func sentinelParams() param.Values {
	return param.Values{"call": "open_close", "warmup": "50ms", "duration": "150ms"}
}

// sentinelKeys are the keys of the section that are not parameters.
func sentinelKeys() []string { return []string{"kind", "every", "share"} }

// sentinel reads the section. Without it, a study whose sandboxes all are fake
// has no sentinel: nothing of it depends on the machine. Nor has one with a
// workload that bears the sentinel's name.
func (d *draft) sentinel(p pair) {
	s := &Sentinel{Share: sentinelShare, Workload: Workload{Label: SentinelLabel, Kind: sentinelKind, Params: sentinelParams()},
		Cell: record.Cell{{Factor: FactorWorkload, Value: SentinelLabel}, {Factor: FactorSandbox, Value: d.cat.Native}}}
	taken := slices.IndexFunc(d.loads, func(w *load) bool { return w.label == SentinelLabel })
	if p.key == nil {
		if taken >= 0 || !slices.ContainsFunc(d.sandboxLevels(), func(l string) bool { return d.traits(l).Family != record.FamilyFake }) || d.fillSentinel(s) != nil {
			return
		}
		d.study.Sentinel = s
		return
	}
	s.Workload.Line = p.key.Line
	switch {
	case empty(p.val):
		d.bad(p.key, "write on, off, or {kind: KIND, every: BLOCKS}", "sentinel has no value")
		return
	case p.val.Kind == yaml.ScalarNode:
		t, ok := d.text(p.val, "sentinel")
		if !ok || t == "off" {
			return
		}
		if t != "on" {
			d.bad(p.val, "write on, off, or {kind: KIND, every: BLOCKS}", "sentinel %q is not possible", t)
			return
		}
	case !d.sentinelKeys(s, d.mapping(p.val, "sentinel")):
		return
	}
	if taken >= 0 {
		d.bad(d.loads[taken].at, "give the workload another name, or write sentinel: off", "%q is the name of the sentinel", SentinelLabel)
		return
	}
	if err := d.fillSentinel(s); err != nil {
		d.refuse(p.key, "the sentinel is not possible: ", err, "change it, or write sentinel: off")
		return
	}
	d.study.Sentinel = s
}

// sentinelKeys reads the section as a mapping; false after a mistake.
func (d *draft) sentinelKeys(s *Sentinel, body []pair) bool {
	before := len(d.errs)
	var every, share *yaml.Node
	var rest []pair
	for _, q := range body {
		switch q.key.Value {
		case "kind":
			if t, ok := d.text(q.val, "kind"); ok {
				if _, known := d.cat.Workloads[t]; !known {
					d.bad(q.val, param.Suggest(t, sortedKeys(d.cat.Workloads)), "there is no kind of workload %q", t)
				}
				if t != sentinelKind {
					s.Workload.Params = param.Values{}
				}
				s.Workload.Kind = t
			}
		case "every":
			every = q.key
			d.count(q.val, "every", 1, 100_000, &s.Every)
		case "share":
			share = q.key
			d.fraction(q.val, "share", 0, 0.5, &s.Share)
		default:
			rest = append(rest, q)
		}
	}
	if every != nil && share != nil {
		d.bad(share, "remove share or every", "share has no effect together with every (line %d)", every.Line)
	}
	info, known := d.cat.Workloads[s.Workload.Kind]
	for _, q := range rest {
		name := q.key.Value
		pr, ok := param.Find(info.Params, name)
		switch {
		case !known && len(d.errs) > before: // the kind is the mistake
		case !ok:
			d.bad(q.key, param.Suggest(name, slices.Concat(param.Names(info.Params), sentinelKeys())), "workload kind %s has no parameter %q", s.Workload.Kind, name)
		case q.val.Kind == yaml.SequenceNode:
			d.bad(q.val, "write one value", "the sentinel is always the same, and %s is a list", name)
		default:
			if t, ok := d.level(q.val, name, []param.Param{pr}); ok {
				s.Workload.Params[name] = t
			}
		}
	}
	return len(d.errs) == before
}

// fillSentinel finds what is watched, and says why the sentinel cannot be.
func (d *draft) fillSentinel(s *Sentinel) error {
	info, ok := d.cat.Workloads[s.Workload.Kind]
	if !ok {
		return fmt.Errorf("this version of tare has no workload %s", s.Workload.Kind)
	}
	if _, ok := d.cat.Sandboxes[d.cat.Native]; !ok {
		return fmt.Errorf("this version of tare has no native sandbox")
	}
	v := param.Values{}
	maps.Copy(v, s.Workload.Params)
	v, err := param.Fill(info.Params, v)
	d.study.embed(v)
	if err == nil && info.Check != nil {
		err = info.Check(v)
	}
	if err != nil {
		return err
	}
	if info.Responses == nil || len(info.Responses(v)) == 0 {
		return fmt.Errorf("workload kind %s has no responses to watch", s.Workload.Kind)
	}
	s.Workload.Responses = []string{info.Responses(v)[0].Name}
	return nil
}

// String says what the sentinel is in a line.
func (s *Sentinel) String() string {
	parts := []string{s.Workload.Kind}
	for _, name := range sortedKeys(s.Workload.Params) {
		parts = append(parts, name+"="+s.Workload.Params[name])
	}
	box, _ := s.Cell.Get(FactorSandbox)
	often := fmt.Sprintf("at most %g %% of the time", 100*s.Share)
	if s.Every == 1 {
		often = "after every block"
	} else if s.Every > 1 {
		often = fmt.Sprintf("after every %d blocks", s.Every)
	}
	return strings.Join(parts, " ") + " on " + box + ", " + often
}
