package cpucost

import (
	"math"
	"slices"

	"tare/record"
)

// Reader keeps the CPU figures of trials in a fifth of the memory that they take as samples:
// 30,000 trials must be analysed within 300 MB. The zero Reader is empty and ready.
type Reader struct {
	index   map[key]uint16 // in kinds
	kinds   []kind
	figures []figure
	trials  map[record.Identity]span
	roles   bool // some trial has a figure by role
	any     bool
}

type key struct {
	name   string
	labels record.Labels
}

// kind identifies a figure.
type kind struct {
	name           string // of the sample
	endpoint, role string
	group          bool // charged to the endpoint's control groups
}

// cpu reports whether the figure is CPU that was used, not its limit.
func (k *kind) cpu() bool { return k.name == byRole || k.name == byGroup }

type figure struct {
	cores float64
	kind  uint16
}

type span struct{ from, to int }

// maxKinds bounds the endpoints and roles of a study: a damaged one may have any.
const maxKinds = 1 << 12

// Read keeps the figures of a trial. Its Cell must stay the same slice until Build.
func (r *Reader) Read(t *record.Trial) {
	if r.trials == nil {
		r.trials = make(map[record.Identity]span)
		r.index = make(map[key]uint16)
	}
	from := len(r.figures)
	for i := range t.Samples {
		s := &t.Samples[i]
		if !ours(s) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		if k, ok := r.kind(s); ok && r.kinds[k].role != string(record.RoleHarness) {
			r.figures = append(r.figures, figure{s.Value, k})
			r.any = r.any || r.kinds[k].cpu()
			r.roles = r.roles || s.Name == byRole
		}
	}
	if len(r.figures) > from {
		r.trials[t.Identity()] = span{from, len(r.figures)}
	}
}

// Take is Read, and removes the figures from the trial's samples.
func (r *Reader) Take(t *record.Trial) {
	r.Read(t)
	t.Drop(ours)
}

func ours(s *record.Sample) bool {
	if s.Labels == "" {
		return false
	}
	switch s.Name {
	case byRole, byGroup, quotaMean, periodsRate, throttledPeriods, throttledTime:
		return true
	}
	return false
}

func (r *Reader) kind(s *record.Sample) (uint16, bool) {
	at := key{s.Name, s.Labels}
	k, ok := r.index[at]
	if !ok {
		if len(r.kinds) == maxKinds {
			return 0, false
		}
		k = uint16(len(r.kinds)) //nolint:gosec // bounded by maxKinds
		r.index[at] = k
		endpoint, _ := record.CopyOf(s.Labels.Get(record.LabelEndpoint)) // the work is that of all copies
		r.kinds = append(r.kinds, kind{s.Name, endpoint, s.Labels.Get(record.LabelRole), s.Name == byGroup})
	}
	return k, true
}

// source returns the source of a study's figures. It is the same for all trials: a ratio must
// not compare two ways of counting.
func (r *Reader) source() string {
	switch {
	case r.roles:
		return FromRoles
	case r.any:
		return FromCgroup
	}
	return ""
}

// cores sums what the endpoints used in a trial, and adds it to the roles. It returns false if an
// end has no figure: without it the sum would be too small.
func (r *Reader) cores(t *record.Trial, endpoints []string, roles map[string]float64) (sum float64, ok bool) {
	at := r.trials[t.Identity()]
	of := r.figures[at.from:at.to]
	for _, endpoint := range endpoints {
		has := slices.ContainsFunc(of, func(f figure) bool {
			k := &r.kinds[f.kind]
			return k.cpu() && k.endpoint == endpoint && k.group != r.roles
		})
		if !has {
			return 0, false
		}
	}
	for _, f := range of {
		k := &r.kinds[f.kind]
		if !k.cpu() || k.group == r.roles || !slices.Contains(endpoints, k.endpoint) {
			continue
		}
		sum += f.cores
		if r.roles {
			roles[k.role] += f.cores
		}
	}
	return sum, len(endpoints) > 0
}
