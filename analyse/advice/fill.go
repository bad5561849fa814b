package advice

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"tare/ordered"
	"tare/record"
	"tare/study"
)

// filler fills a rule's templates for one group. Of several targets, of groups that are
// one item, running text has all, and patches those of the first.
type filler struct {
	b     *builder
	g     *group
	to    target
	moves []move // empty: one, to to
}

func (b *builder) filler(g *group, to target) *filler { return &filler{b: b, g: g, to: to} }

// funcs are the words of templates.
func (f *filler) funcs() template.FuncMap {
	s := f.g.list[0]
	return template.FuncMap{
		"to":       f.toward,
		"each":     f.each,
		"start":    f.start,
		"limit":    f.limit,
		"either":   f.either,
		"removed":  func(factor string) bool { return f.leads(factor, func(to string) bool { return to == none }) },
		"kept":     func(factor string) bool { return f.leads(factor, func(to string) bool { return to != none }) },
		"from":     func(factor string) string { return strings.Join(f.from(factor), " and ") },
		"number":   f.number,
		"quantity": quantity,
		"bound": func() bool {
			return slices.ContainsFunc(f.g.list, func(s *subject) bool { return !s.gains || s.workers > s.vcpus })
		},
		"vm":        func() bool { return s.family == record.FamilyVM },
		"role":      func() string { return s.f.Role },
		"iothreads": func() int { return ioThreads(f.g.list) },
		"cores": func() int { // whole, and at least what was used
			n := 1.0
			for _, s := range f.g.list {
				n = max(n, s.cores, s.limit)
			}
			return int(math.Ceil(n))
		},
		"mask": func() string { // of the guest's processors, as rps_cpus takes it
			n := 2
			for _, s := range f.g.list {
				n = max(n, s.vcpus+int(math.Ceil(s.limit)))
			}
			return fmt.Sprintf("%x", uint64(1)<<min(n, 32)-1)
		},
		"among": func() string {
			var out []string
			for _, s := range f.g.list {
				for _, k := range s.f.Among {
					out = ordered.Add(out, k.Word())
				}
			}
			return strings.Join(out, ", ")
		},
		"missing": func() string {
			var out []string
			for _, s := range f.g.list {
				if m := strings.TrimRight(s.f.Missing, "."); m != "" && !slices.Contains(out, m) {
					out = append(out, m)
				}
			}
			if len(out) == 0 {
				return "its trials have no series; see docs/cause.md"
			}
			return strings.Join(out, "; ")
		},
		"nodes": func() string { // follows the path of a runtime's file
			if s.cluster {
				return " on each node, for its RuntimeClass"
			}
			return ""
		},
		"run":  f.run,
		"vary": f.vary,
	}
}

// vary are the factors of which other levels tell causes apart: those of the workloads, and what can be set of the sandbox where the study
// varies it.
func (f *filler) vary() string {
	var out []string
	for _, s := range f.g.list {
		for _, name := range f.b.loadOf(s.f).Vary {
			out = ordered.Add(out, name)
		}
	}
	for _, x := range f.b.rules.Factors {
		if s := f.g.list[0]; swap(s.f.Cell, x.Name, "") != nil && len(f.b.levels(x.Name)) > 1 {
			out = ordered.Add(out, x.Name)
		}
	}
	switch last := len(out) - 1; {
	case last < 0:
		return "less and with more load"
	case last == 0:
		return "other levels of " + out[0]
	default:
		return "other levels of " + strings.Join(out[:last], ", ") + " or " + out[last]
	}
}

// fill fills one template. A test fills all of them: a bad one gives what is bad.
func (f *filler) fill(text string) string {
	t, err := template.New("").Option("missingkey=error").Funcs(f.funcs()).Parse(text)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return err.Error()
	}
	return b.String()
}

// text fills a template of running text.
func (f *filler) text(text string) string { return strings.Join(strings.Fields(f.fill(text)), " ") }

// sentence joins what to do and why.
func sentence(change, why string) string {
	return strings.TrimSpace(change + ". " + why)
}

// patches are those that fit the group's family and conditions.
func (f *filler) patches() []Patch {
	s := f.g.list[0]
	var out []Patch
	for _, p := range f.g.rule.Patches {
		if len(p.In) > 0 && !slices.Contains(p.In, string(s.family)) || !s.holds(p.When) {
			continue
		}
		text := f.fill(p.Text)
		if strings.TrimSpace(text) == "" {
			continue
		}
		out = append(out, Patch{For: p.For, File: f.text(p.File), Text: strings.TrimRight(text, "\n") + "\n"})
	}
	return out
}

// number is a target's level that a machine reads as one; "1" where there is none.
func (f *filler) number(factor string) string {
	v, _ := f.to.level(factor)
	if _, err := strconv.Atoi(v); err != nil {
		return "1"
	}
	return v
}

// quantity is a CPU limit in a Kubernetes manifest; null removes it in a merge.
func quantity(level string) string {
	if level == none || level == "" {
		return "null"
	}
	return strconv.Quote(level)
}

// from are the levels that the cells have of a factor, or its usual one.
func (f *filler) from(factor string) []string {
	var out []string
	for _, s := range f.g.list {
		if v := s.level(factor); v != "" {
			out = append(out, v)
		}
	}
	return unique(out)
}

// level is what a subject has of a factor, or its usual one.
func (s *subject) level(factor string) string {
	if v, ok := s.f.Cell.Get(factor); ok {
		return v
	}
	return usual(factor, s)
}

// from are a subject's levels of what a rule sets.
func (s *subject) from(r *Rule) record.Cell {
	var out record.Cell
	for _, set := range r.Set {
		out = append(out, record.Level{Factor: set.Factor, Value: s.level(set.Factor)})
	}
	return out
}

// usual is the level of a factor where the study does not vary it.
func usual(factor string, s *subject) string {
	switch factor {
	case study.FactorCPULimit:
		return none
	case study.FactorCPUs:
		return anyCPU
	case factorVCPUs:
		return "1"
	case factorQueues:
		return strconv.Itoa(s.queues)
	case factorRootfs:
		return virtiofs
	case factorIOThreads:
		if record.ThreadRole(s.f.Role) == record.RoleIOThread { // it has one at least
			return "1"
		}
		return "0"
	}
	return ""
}

// sources joins a rule's sources.
func sources(list []string) string { return strings.Join(list, "; ") }

// digits writes a ratio.
func digits(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
