package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/internal/window"
	"tare/param"
	"tare/record"
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// A trial may have a victim beside its load: a second part, with roles, sandboxes and responses of
// its own. docs/design/0042-victim.md.

// part is a workload of a trial: the load, or the victim.
type part struct {
	res   study.Resolved
	load  workload.Workload
	roles []workload.Role // of all copies; none if the victim is alone
}

// ends is how many roles a copy has.
func (p *part) ends() int { return len(p.roles) / max(1, p.res.Copies) }

// isolates reports whether a role of the part is an isolated endpoint.
func (p *part) isolates(role string) bool {
	return study.Isolated(p.res.Isolate, strings.TrimPrefix(role, record.VictimRolePrefix), p.ends())
}

// boxes is how many sandboxes of its kind the part has at once on one of so many nodes, the one that has most.
func (p *part) boxes(nodes int) int {
	n := max(1, p.res.Copies)
	if p.res.Spread && nodes > 1 {
		n = (n + nodes - 1) / nodes
	}
	if p.ends() > 1 && p.res.Isolate == study.Both {
		return n * p.ends()
	}
	return n
}

// parts are those of a trial: the load, and the victim if there is one.
type parts struct {
	part
	victim *part
}

// each lists the parts that run.
func (p *parts) each() []*part {
	var out []*part
	if len(p.roles) > 0 || p.victim == nil {
		out = append(out, &p.part)
	}
	if p.victim != nil {
		out = append(out, p.victim)
	}
	return out
}

// of is the part that a role belongs to.
func (p *parts) of(role string) *part {
	if p.victim != nil && record.IsVictim(role) {
		return p.victim
	}
	return &p.part
}

// all are the roles of all parts.
func (p *parts) all() []workload.Role {
	if p.victim == nil {
		return p.roles
	}
	return slices.Concat(p.roles, p.victim.roles)
}

// shared returns why the victim cannot run beside the load: both would write to one device or directory of the user. It returns "" if it
// can. A volume of tare's own is another one for each role.
func (p *parts) shared() string {
	if p.victim == nil {
		return ""
	}
	written := func(v volume.Volume) string {
		switch {
		case v.Medium == volume.Device:
			return v.Device
		case v.Medium == volume.Bind && !v.ReadOnly:
			return v.Host
		}
		return ""
	}
	taken := map[string]bool{"": true}
	for _, r := range p.roles {
		for _, v := range r.Volumes {
			taken[written(v)] = true
		}
	}
	for _, r := range p.victim.roles {
		for _, v := range r.Volumes {
			if at := written(v); at != "" && taken[at] {
				return "the victim and the load would both write to " + at + "; name another one for the victim"
			}
		}
	}
	return ""
}

// withVictim gives a load its victim, which is measured for as long as the load unless the study says
// for how long. A load that has no place beside its victim loses its roles.
func (m *Maker) withVictim(p *parts) error {
	res := p.res.Victim
	if res == nil {
		return nil
	}
	w := m.Workloads[res.Workload.Kind]
	if w == nil {
		return fmt.Errorf("this tare has no workload %q; see `tare list`", res.Workload.Kind)
	}
	v := &part{res: *res, load: w}
	v.res.Params = paced(w, res, p.roles)
	roles, err := w.Roles(v.res.Params)
	if err != nil { // a time that the study's author did not write
		v.res.Params = res.Params
		if roles, err = w.Roles(res.Params); err != nil {
			return err //nolint:wrapcheck // study.Parse has checked it
		}
	}
	workload.Rename(roles, func(name string) string { return record.VictimRolePrefix + name })
	v.roles, p.victim = roles, v
	if p.res.Alone {
		p.roles = nil
	}
	return nil
}

// leastVictim is the shortest time that a victim is measured for by default.
const leastVictim = 100 * time.Millisecond

// paced are a victim's parameters for a load. What the study does not say follows the load: the
// warm-up lasts as long, and both are measured until the same moment.
func paced(w workload.Workload, res *study.Resolved, load []workload.Role) param.Values {
	out := param.Values{}
	for name, text := range res.Params {
		out[name] = text
	}
	set := func(name string, d time.Duration) {
		p, ok := param.Find(w.Params(), name)
		_, said := res.Workload.Params[name]
		if !ok || said || p.Type != param.Duration {
			return
		}
		if text, err := p.Check(d.Round(time.Millisecond).String()); err == nil {
			out[name] = text
		}
	}
	warmup, whole, launches := time.Duration(0), time.Duration(0), false
	for i := range load {
		if !load[i].Background {
			warmup, whole = max(warmup, load[i].Warmup), max(whole, load[i].Warmup+load[i].Expect)
			launches = launches || load[i].Mode != workload.Exec
		}
	}
	if warmup > 0 {
		set("warmup", warmup)
	}
	if !launches { // else the load begins after the victim's warm-up
		whole -= out.Duration("warmup")
	}
	if whole >= leastVictim {
		set("duration", whole)
	}
	return out
}

// victimWarmup is how long the victim warms up.
func (t *set) victimWarmup() (d time.Duration) {
	if t.victim != nil {
		for i := range t.victim.roles {
			if !t.victim.roles[i].Background {
				d = max(d, t.victim.roles[i].Warmup)
			}
		}
	}
	return d
}

// ofVictim names what the victim's programs tell so that nothing of the load has the same name.
func ofVictim(r *record.Reading) {
	for i := range r.Samples {
		r.Samples[i].Name = record.VictimPrefix + r.Samples[i].Name
	}
	for i := range r.Histograms {
		r.Histograms[i].Name = record.VictimPrefix + r.Histograms[i].Name
	}
	for i := range r.Series {
		s := &r.Series[i]
		s.Name = record.VictimPrefix + s.Name
		if name := s.Labels.Get(record.LabelResponse); name != "" {
			s.Labels = s.Labels.With(record.LabelResponse, record.VictimPrefix+name)
		}
	}
	for i := range r.Warnings {
		w := &r.Warnings[i]
		w.Text = "victim: " + w.Text
		if name, ok := strings.CutPrefix(w.Code, record.BelowNoise); ok {
			w.Code = record.BelowNoise + record.VictimPrefix + name
		}
	}
}

// lastRole is the last role of the part that a response is of.
func (t *set) lastRole(response string) string {
	p := &t.part
	if t.victim != nil && strings.HasPrefix(response, record.VictimPrefix) {
		p = t.victim
	}
	return p.roles[len(p.roles)-1].Name
}

// keepVictimOverlap says for what part of the victim's measured time the load was measured, in w. A
// victim that had nothing beside it tells nothing about the load: the trial is void.
func (t *trial) keepVictimOverlap(w window.Span) error {
	if t.victim == nil || t.res.Alone {
		return nil
	}
	from, to := time.Duration(0), time.Duration(0)
	for _, ep := range t.endpoints {
		if !record.IsVictim(ep.role.Name) || ep.role.Background {
			continue
		}
		if ep.begun.IsZero() {
			return nil // its sandbox does not know when its command began
		}
		from = max(from, ep.begun.Add(ep.role.Warmup).Sub(t.rec.Start))
		if end := ep.ended.Sub(t.rec.Start); to == 0 || end < to {
			to = end
		}
	}
	if to <= from {
		return nil
	}
	both := min(to, w.To) - max(from, w.From)
	if both <= 0 {
		return &failure{kind: "apart", role: t.victim.roles[len(t.victim.roles)-1].Name, err: errors.New(
			"the victim and the load were not measured at the same time; give the load a longer duration, or the victim a shorter warmup")}
	}
	part := both.Seconds() / (to - from).Seconds()
	t.rec.Samples = append(t.rec.Samples, record.Sample{Name: record.VictimOverlap, Unit: record.Fraction, Kind: record.Value, Value: part})
	if part < overlapLeast {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{Code: record.VictimApart, Text: fmt.Sprintf(
			"the load was measured for only %.0f %% of the time in which the victim was; a longer load, or a shorter duration of the victim, keeps them together", 100*part)})
	}
	return nil
}
