package advice

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"tare/study"
)

// filler fills a rule's templates for one group.
type filler struct {
	b  *builder
	g  *group
	to target
}

func (b *builder) filler(g *group, to target) *filler { return &filler{b, g, to} }

// funcs are the words of templates.
func (f *filler) funcs() template.FuncMap {
	s := f.g.list[0]
	return template.FuncMap{
		"to":       func(factor string) string { v, _ := f.to.level(factor); return v },
		"from":     func(factor string) string { return strings.Join(f.from(factor), " and ") },
		"number":   f.number,
		"quantity": quantity,
		"enough":   func() string { return strconv.Itoa(f.b.enough(f.g.list)) },
		"vm":       func() bool { return s.family == FamilyVM },
		"role":     func() string { return s.f.Role },
		"iothreads": func() int { // 4 to 8 are a good start; no more than jobs
			n := 0
			for _, s := range f.g.list {
				n = max(n, s.workers)
			}
			return max(4, min(8, n))
		},
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
					if !slices.Contains(out, string(k)) {
						out = append(out, string(k))
					}
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
		"run": f.run,
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

// patches are those that fit the group's family and conditions.
func (f *filler) patches() []Patch {
	s := f.g.list[0]
	var out []Patch
	for _, p := range f.g.rule.Patches {
		if len(p.In) > 0 && !slices.Contains(p.In, s.family) || !s.holds(p.When) {
			continue
		}
		text := f.fill(p.Text)
		if strings.TrimSpace(text) == "" {
			continue
		}
		out = append(out, Patch{For: p.For, File: p.File, Text: strings.TrimRight(text, "\n") + "\n"})
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
		v, ok := s.f.Cell.Get(factor)
		if !ok {
			v = usual(factor, s)
		}
		if v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
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
	}
	return ""
}

// run is the command that measures the setting beside the cells as they are, of a study
// whose file is STUDY; "" where the study file itself has to be changed.
func (f *filler) run() string {
	var out []string
	set := func(factor string, levels []string) {
		for i := range levels {
			levels[i] = strings.ReplaceAll(levels[i], ",", `\,`)
		}
		out = append(out, "--set "+quoted(factor+"="+strings.Join(levels, ",")))
	}
	sandboxes := f.varied(study.FactorSandbox)
	if f.b.in.Compare == study.FactorSandbox {
		sandboxes = slices.Insert(slices.DeleteFunc(sandboxes, func(l string) bool { return l == f.b.in.Baseline }), 0, f.b.in.Baseline)
	}
	for _, l := range f.to {
		if l.Factor == study.FactorSandbox {
			level, ok := f.builtIn(l.Value)
			if !ok {
				return ""
			}
			sandboxes = append(sandboxes, level)
		}
	}
	if len(sandboxes) > 0 {
		set(study.FactorSandbox, unique(sandboxes))
	}
	if w := f.varied(study.FactorWorkload); len(w) > 0 {
		set(study.FactorWorkload, w)
	}
	for _, l := range f.to {
		if l.Factor != study.FactorSandbox {
			set(l.Factor, unique(append(f.from(l.Factor), l.Value)))
		}
	}
	return "tare run STUDY " + strings.Join(out, " ")
}

// builtIn is the level that a setting of the factor sandbox stands for, where tare or
// the study has it.
func (f *filler) builtIn(to string) (string, bool) {
	if p, ok := strings.CutPrefix(to, platform); ok {
		return runscFamily + "-" + p, true
	}
	return to, !strings.Contains(to, "=")
}

// varied are the levels that the group's cells have of a factor.
func (f *filler) varied(factor string) []string {
	var out []string
	for _, s := range f.g.list {
		if v, ok := s.f.Cell.Get(factor); ok {
			out = append(out, v)
		}
	}
	return unique(out)
}

func unique(v []string) []string {
	var out []string
	for _, x := range v {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// quoted writes an argument as a shell takes it.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./,:@%+-=", r)
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// sources joins a rule's sources.
func sources(list []string) string { return strings.Join(list, "; ") }

// digits writes a ratio.
func digits(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// unproven says why a gain is not sure, and what would have to be measured.
func (b *builder) unproven(g *group, chosen *trial, f *filler) string {
	switch {
	case chosen != nil && chosen.proven():
		return ""
	case chosen != nil:
		return fmt.Sprintf("measured, but not sure: %s. More blocks decide: tare run STUDY --set stop.fixed=12", chosen.reason)
	case len(g.rule.Set) == 0:
		return "the study varies no such setting"
	}
	if line := f.run(); line != "" {
		return "not measured; these cells would tell: " + line
	}
	var flags []string
	for _, l := range f.to {
		flags = append(flags, "--"+l.Value)
	}
	return fmt.Sprintf("not measured; give the study a sandbox of its own that has %s among its args besides, and run it", strings.Join(flags, " "))
}

// price says what the cure costs in CPU: measured where it was, else by the rule, and
// what a unit of work costs today.
func (b *builder) price(g *group, chosen *trial, f *filler) string {
	var out []string
	if chosen != nil {
		if s := b.measuredPrice(chosen); s != "" {
			out = append(out, s)
		}
	}
	if len(out) == 0 && g.rule.Price != "" {
		out = append(out, f.text(g.rule.Price))
	}
	if chosen == nil || len(out) == 0 {
		if p := g.list[0].f.Price; p != nil && p.Ratio > 0 && len(g.rule.Set) > 0 {
			out = append(out, fmt.Sprintf("a %s costs %s times the baseline's CPU today (%s cores used, %s by the baseline)",
				p.Unit, digits(p.Ratio), digits(p.Cores), digits(p.Base)))
		}
	}
	return strings.Join(out, "; ")
}

// measuredPrice compares the CPU a unit of work with a setting to that without.
func (b *builder) measuredPrice(t *trial) string {
	n, with, native, cores, was := 0.0, 0.0, 0.0, 0.0, 0.0
	unit, natives := "", 0.0
	for _, p := range t.pairs {
		from, to := b.cost(p.from), b.cost(p.to)
		if from == nil || to == nil || !(from.Value > 0) || !(to.Value > 0) || !(from.Cores > 0) || !(to.Cores > 0) {
			continue
		}
		n++
		unit = to.Unit
		with += math.Log(to.Value / from.Value)
		cores += math.Log(to.Cores)
		was += math.Log(from.Cores)
		if to.Estimate.Ratio > 0 {
			natives++
			native += math.Log(to.Estimate.Ratio)
		}
	}
	if n == 0 {
		return ""
	}
	mean := func(sum, n float64) string { return digits(math.Exp(sum / n)) }
	s := fmt.Sprintf("measured: a %s takes %s times the CPU that it takes without, %s cores instead of %s", unit, mean(with, n), mean(cores, n), mean(was, n))
	if natives > 0 {
		s += fmt.Sprintf("; %s times the baseline's CPU", mean(native, natives))
	}
	return s
}

// Compatible picks those items that may be set together, the first of each pair that
// excludes another before it, and says of the others by which rule they are left out:
// their rules exclude each other, or both change one factor or file differently.
func Compatible(items []Item) (chosen []Item, left map[int]string) {
	left = make(map[int]string)
	for i := range items {
		x := &items[i]
		by := ""
		for k := range chosen {
			if y := &chosen[k]; excludes(x, y) {
				by = y.Rule
				break
			}
		}
		if by != "" {
			left[i] = by
			continue
		}
		chosen = append(chosen, *x)
	}
	return chosen, left
}

func excludes(x, y *Item) bool {
	if slices.Contains(x.NotWith, y.Rule) || slices.Contains(y.NotWith, x.Rule) {
		return true
	}
	for _, l := range x.Sets {
		if v, ok := y.Sets.Get(l.Factor); ok && v != l.Value {
			return true
		}
	}
	return false
}

