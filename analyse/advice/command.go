package advice

import (
	"maps"
	"slices"
	"strings"

	"tare/ordered"
	"tare/record"
	"tare/study"
)

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
			level := l.Value
			if strings.Contains(level, "=") { // a setting that the study did not measure
				now, _ := f.g.list[0].f.Cell.Get(study.FactorSandbox)
				var ok bool
				if level, ok = LevelWith(f.b.in.Traits, now, level); !ok {
					return ""
				}
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
	return f.b.run() + " " + strings.Join(out, " ")
}

// run begins the command that measures cells of the study, where it was measured.
func (b *builder) run() string { return strings.TrimSpace("tare run STUDY " + b.in.On) }

// LevelWith returns the first sandbox, by name, that has the flags of another and the given
// one besides; false when none has.
func LevelWith(kinds map[string]record.Traits, other, flag string) (string, bool) {
	for _, level := range slices.Sorted(maps.Keys(kinds)) {
		if t := kinds[level]; t.Family == record.FamilyGVisor && sameBut(kinds[other].Flags, t.Flags, flag) {
			return level, true
		}
	}
	return "", false
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

func unique(v []string) []string { return ordered.Add(nil, v...) }

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
