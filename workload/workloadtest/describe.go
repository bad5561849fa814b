package workloadtest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
	"tare/workload"
)

var (
	kindRE  = regexp.MustCompile(`^[a-z][a-z0-9]*([-_.][a-z0-9]+)*$`)
	nameRE  = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	placeRE = regexp.MustCompile(`\{([a-z][a-z0-9-]*)\}`)
)

// reserved are tare's own factors (study.Factor...), whose names a parameter must not have.
//
//nolint:gochecknoglobals // a table that nothing changes
var reserved = []string{"workload", "sandbox", "isolate", "cpu-limit", "memory-limit", "cpus", "link-delay", "link-rate", "link-path", "copies", "copies-on",
	record.SettingMigrationCost, record.SettingARPLimit}

//nolint:gochecknoglobals // tables that nothing changes
var (
	units = []record.Unit{record.Second, record.Byte, record.BytesPerSecond, record.PerSecond, record.Cores, record.Count, record.Fraction}
	types = []param.Type{param.Int, param.Float, param.Bool, param.Size, param.Duration, param.Rate, param.Enum, param.String, param.CPUs, param.File}
)

func (s *suite) describes() (bad []string) {
	if !kindRE.MatchString(s.w.Name()) {
		bad = append(bad, fmt.Sprintf("Name %q: use lower-case words joined by a hyphen, a dot after a family (http.node)", s.w.Name()))
	}
	if a := s.w.About(); len(strings.Fields(a)) < 3 || strings.Contains(a, "\n") {
		bad = append(bad, fmt.Sprintf("About %q: say in one line what it loads and what with", a))
	}
	return bad
}

func (s *suite) params() (bad []string) {
	ps := s.w.Params()
	seen := map[string]bool{}
	for _, p := range ps {
		fail := func(format string, args ...any) {
			bad = append(bad, fmt.Sprintf("parameter %q: ", p.Name)+fmt.Sprintf(format, args...))
		}
		if !nameRE.MatchString(p.Name) {
			fail("the name is not lower-case words joined by a hyphen")
		}
		if seen[p.Name] {
			fail("is given twice")
		}
		seen[p.Name] = true
		if slices.Contains(reserved, p.Name) {
			fail("is a factor of tare's own; choose another name")
		}
		if !slices.Contains(types, p.Type) {
			fail("has the unknown type %q", p.Type)
		}
		if len(strings.Fields(p.Help)) < 2 {
			fail("Help %q does not explain it", p.Help)
		}
		if p.Type == param.Enum && len(p.Words) == 0 {
			fail("is a word without Words")
		}
		if _, err := p.Check(p.Default); err != nil {
			fail("the default %q is not valid: %v", p.Default, err)
		}
	}
	if _, err := param.Fill(ps, nil); err != nil {
		bad = append(bad, fmt.Sprintf("the defaults do not pass param.Fill: %v", err))
	}
	return bad
}

// documented checks that the page names, in backquotes, every parameter, and every response of a
// case.
func (s *suite) documented() (bad []string) {
	b, err := os.ReadFile(s.docs)
	if err != nil {
		return []string{fmt.Sprintf("the page of documentation is missing: %v", err)}
	}
	want := param.Names(s.w.Params())
	for _, v := range s.values() {
		for _, r := range s.w.Responses(v) {
			want = append(want, r.Name)
		}
	}
	slices.Sort(want)
	for _, name := range slices.Compact(want) {
		if !strings.Contains(string(b), "`"+name+"`") {
			bad = append(bad, fmt.Sprintf("docs/workloads/%s.md does not mention `%s`", s.w.Name(), name))
		}
	}
	return bad
}

// values are the defaults and those of the cases that must be accepted.
func (s *suite) values() []param.Values {
	var out []param.Values
	if v, err := param.Fill(s.w.Params(), nil); err == nil {
		out = append(out, v)
	}
	for _, c := range s.cases {
		if v, err := param.Fill(s.w.Params(), c.Params); err == nil && !c.Refused {
			out = append(out, v)
		}
	}
	return out
}

func (s *suite) roles() (bad []string) {
	for _, v := range s.values() {
		roles, err := s.w.Roles(v)
		if err != nil {
			bad = append(bad, fmt.Sprintf("Roles(%v) refuses: %v", v, err))
			continue
		}
		bad = append(bad, soundRoles(roles)...)
		bad = append(bad, soundResponses(s.w.Responses(v))...)
	}
	return bad
}

func soundRoles(roles []workload.Role) (bad []string) {
	foreground := false
	names := map[string]workload.Role{}
	for _, r := range roles {
		if _, twice := names[r.Name]; twice || !nameRE.MatchString(r.Name) {
			bad = append(bad, fmt.Sprintf("role %q: the name is not a word, or is given twice", r.Name))
		}
		names[r.Name] = r
		foreground = foreground || !r.Background
	}
	if !foreground {
		bad = append(bad, "no role ends by itself, so the trial would never end")
	}
	for _, r := range roles {
		bad = append(bad, soundRole(r, names)...)
	}
	return bad
}

func soundRole(r workload.Role, names map[string]workload.Role) (bad []string) {
	fail := func(format string, args ...any) {
		bad = append(bad, fmt.Sprintf("role %s: ", r.Name)+fmt.Sprintf(format, args...))
	}
	switch r.Mode {
	case workload.Exec:
		if r.Count > 1 {
			fail("Count %d, but Exec runs once", r.Count)
		}
	case workload.Launch, workload.Idle, workload.Checkpoint:
		if r.Count < 1 {
			fail("%s needs a Count of 1 or more", r.Mode)
		}
		if r.Background {
			fail("%s cannot be in the background", r.Mode)
		}
	default:
		fail("unknown Mode %q", r.Mode)
	}
	if len(r.Args) == 0 {
		fail("has no command")
		return bad
	}
	if prog := r.Args[0]; r.Image == "" && !strings.HasPrefix(prog, "/tare") &&
		!slices.Contains(r.Needs, prog) && !slices.Contains(r.Needs, path.Base(prog)) {
		fail("runs %s, which Needs does not name, so it will not be in the root file system", prog)
	}
	if r.Image != "" && len(r.Needs) > 0 {
		fail("Needs %v are for roles without an Image; put them into the image %s", r.Needs, r.Image)
	}
	if r.Background && r.Ready == "" && r.Probe == nil {
		fail("is in the background without a Ready line or a Probe, so run cannot know when to start the others")
	}
	if r.Until != "" && (r.Background || r.Mode != workload.Exec) {
		fail("has Until %q, which is for an Exec role in the foreground", r.Until)
	}
	if r.Mode == workload.Checkpoint && r.Probe == nil {
		fail("is saved and restored without a Probe, so run cannot know when it is ready")
	}
	if p := r.Probe; p != nil {
		bad = append(bad, soundProbe(r.Name, *p)...)
	}
	for _, arg := range r.Args {
		for _, m := range placeRE.FindAllStringSubmatch(arg, -1) {
			switch other, ok := names[m[1]]; {
			case !ok:
				fail("%q stands for a role that does not exist", m[0])
			case other.Name == r.Name:
				fail("%q stands for itself", m[0])
			case !other.Background:
				fail("%q stands for a role that may not run yet: make it Background", m[0])
			}
		}
	}
	if r.Warmup < 0 || r.Expect < 0 {
		fail("a negative Warmup or Expect")
	}
	return bad
}

func soundProbe(role string, p workload.Probe) (bad []string) {
	fail := func(format string, args ...any) {
		bad = append(bad, fmt.Sprintf("role %s: Probe: ", role)+fmt.Sprintf(format, args...))
	}
	if p.Port < 1 || p.Port > 65535 {
		fail("the port %d is out of range", p.Port)
	}
	if p.Path != "" && (!strings.HasPrefix(p.Path, "/") || p.Send != "" || p.Want != "") {
		fail("Path %q is for HTTP, begins with a slash and excludes Send and Want", p.Path)
	}
	if p.Size != 0 && p.Path == "" || p.Size < 0 {
		fail("Size %d needs a Path, whose body it is", p.Size)
	}
	return bad
}

func soundResponses(rs []record.Response) (bad []string) {
	if len(rs) == 0 {
		return []string{"the workload has no response, so nothing can be compared"}
	}
	seen := map[string]bool{}
	for i, r := range rs {
		fail := func(format string, args ...any) {
			bad = append(bad, fmt.Sprintf("response %q: ", r.Name)+fmt.Sprintf(format, args...))
		}
		if !nameRE.MatchString(r.Name) || seen[r.Name] {
			fail("the name is not a word, or is given twice")
		}
		seen[r.Name] = true
		if !slices.Contains(units, r.Unit) {
			fail("%q is not a base unit", r.Unit)
		}
		switch r.Better {
		case record.Higher, record.Lower:
		case record.Neither:
			if i == 0 {
				fail("is first, so stopping rules look at it, but has no better direction")
			}
		default:
			fail("unknown direction %q", r.Better)
		}
	}
	return bad
}

func (s *suite) deterministic() (bad []string) {
	for _, v := range s.values() {
		before := maps.Clone(v)
		first, _ := s.w.Roles(v)
		responses := s.w.Responses(v)
		for range 8 {
			again, _ := s.w.Roles(maps.Clone(v))
			if d := cmp.Diff(first, again); d != "" {
				return append(bad, "Roles differs between two calls with the same values:\n"+d)
			}
			if d := cmp.Diff(responses, s.w.Responses(v)); d != "" {
				return append(bad, "Responses differs between two calls with the same values:\n"+d)
			}
		}
		if !maps.Equal(before, v) {
			bad = append(bad, "Roles or Responses changes the values it is given")
		}
	}
	return bad
}

// extremes sets one parameter at a time to each of its words and bounds. A value that cannot be
// combined with the other defaults may be refused, with the parameter's name.
func (s *suite) extremes() (bad []string) {
	ps := s.w.Params()
	for _, p := range ps {
		for _, text := range extremesOf(p) {
			v, err := param.Fill(ps, param.Values{p.Name: text})
			if err != nil {
				bad = append(bad, fmt.Sprintf("parameter %s refuses %s, its own word or bound: %v", p.Name, text, err))
				continue
			}
			roles, err := s.w.Roles(v)
			if err != nil {
				if !strings.Contains(err.Error(), p.Name) {
					bad = append(bad, fmt.Sprintf("%s = %s is refused without naming the parameter: %v", p.Name, text, err))
				}
				continue
			}
			for _, b := range append(soundRoles(roles), soundResponses(s.w.Responses(v))...) {
				bad = append(bad, fmt.Sprintf("%s = %s: %s", p.Name, text, b))
			}
		}
	}
	return bad
}

func extremesOf(p param.Param) []string {
	out := slices.Clone(p.Words)
	if p.Type == param.Bool {
		out = append(out, "true", "false")
	}
	if p.Max > p.Min {
		for _, n := range []float64{p.Min, p.Max} {
			switch p.Type {
			case param.Int, param.Size:
				out = append(out, strconv.FormatInt(int64(n), 10))
			case param.Float:
				out = append(out, strconv.FormatFloat(n, 'f', -1, 64))
			case param.Duration:
				out = append(out, strconv.FormatFloat(n, 'f', -1, 64)+"s")
			}
		}
	}
	return out
}

func (s *suite) refuses() (bad []string) {
	for _, c := range s.cases {
		if !c.Refused {
			continue
		}
		v, err := param.Fill(s.w.Params(), c.Params)
		if err != nil {
			bad = append(bad, fmt.Sprintf("case %s is refused by param.Fill already: %v", c.Name, err))
			continue
		}
		_, err = s.w.Roles(v)
		if err == nil {
			bad = append(bad, fmt.Sprintf("case %s: Roles accepts %v", c.Name, c.Params))
			continue
		}
		named := func(p string) bool { return strings.Contains(err.Error(), p) }
		if !slices.ContainsFunc(sorted(c.Params), named) {
			bad = append(bad, fmt.Sprintf("case %s: the error names none of the parameters: %v", c.Name, err))
		}
	}
	return bad
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
