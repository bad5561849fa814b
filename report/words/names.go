package words

import (
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/study"
)

// Treatment names a treatment: the level of the compared factor, and what is
// nested below it with its name, where it tells treatments apart. The result tells which
// sandboxes are virtual machines without hardware virtualization, here and below; it may
// be nil.
func Treatment(r *analyse.Result, c record.Cell) string {
	if len(c) == 0 {
		return ""
	}
	return strings.TrimSpace(r.LevelName(c[0]) + " " + Levels(r, r.Distinct(c)[1:], " "))
}

// Base names the baseline in a sentence: a sandbox by its name, a level of another factor as factor=level.
func Base(r *analyse.Result) string { return named(r, r.Baseline) }

// BySandbox reports whether sandboxes are compared, whose names say what they are.
func BySandbox(r *analyse.Result) bool { return r.Compare == "" || r.Compare == study.FactorSandbox }

// named puts the compared factor before a level that does not say what it is, such as a number.
func named(r *analyse.Result, level string) string {
	if BySandbox(r) {
		return level
	}
	return r.Compare + "=" + level
}

// TreatmentOf names a treatment by its Treatment.Key; one that the result does not have is
// called by the key.
func TreatmentOf(r *analyse.Result, key string) string {
	for i := range r.Treatments {
		if r.Treatments[i].Key == key {
			return Treatment(r, r.Treatments[i].Cell)
		}
	}
	return key
}

// Boot names the sandboxes whose starts are told: the treatment, and the levels that tell their strata apart.
func Boot(r *analyse.Result, b *analyse.Boot) string {
	return strings.TrimSpace(Treatment(r, b.Cell) + " " + Levels(r, b.Levels, " "))
}

// Levels writes levels with the names of their factors.
func Levels(r *analyse.Result, c record.Cell, between string) string {
	parts := make([]string, len(c))
	for i, l := range c {
		parts[i] = l.Factor + "=" + r.LevelName(l)
	}
	return strings.Join(parts, between)
}

// Stratum names a stratum: the workload and the stratum's levels, those left out
// that are fixed.
func Stratum(r *analyse.Result, workload string, shared, fixed record.Cell) string {
	rest := shared.Without(study.FactorWorkload)
	for _, l := range fixed {
		rest = rest.Without(l.Factor)
	}
	return strings.TrimSpace(workload + " " + Levels(r, rest, " "))
}

// Fixed are the levels that all strata have, of their Shared, the workload left
// out: they are said once.
func Fixed[T any](strata []T, shared func(*T) record.Cell) record.Cell {
	var out record.Cell
	for i := range strata {
		c := shared(&strata[i]).Without(study.FactorWorkload)
		if i == 0 {
			out = slices.Clone(c)
		}
		out = slices.DeleteFunc(out, func(l record.Level) bool { return !slices.Contains(c, l) })
	}
	return out
}

// With says once what all strata have, and what all treatments of one level of the
// compared factor have; "" where there is no such thing.
func With(r *analyse.Result, fixed record.Cell) string {
	var parts []string
	if len(fixed) > 0 {
		parts = append(parts, "with "+Levels(r, fixed, " "))
	}
	for i, c := range r.Common {
		if i > 0 && slices.Equal(c.Of, r.Common[i-1].Of) {
			parts[len(parts)-1] += " " + Levels(r, record.Cell{c.Level}, " ")
			continue
		}
		of := make([]string, len(c.Of))
		for k, v := range c.Of {
			of[k] = r.LevelName(record.Level{Factor: r.Compare, Value: v})
		}
		parts = append(parts, List(of)+" with "+Levels(r, record.Cell{c.Level}, " "))
	}
	return strings.Join(parts, "; ")
}

// Path writes a path as a shell takes it in a command: quoted where it has to be,
// and with ./ in front of one that would be read as a flag.
func Path(p string) string {
	if strings.HasPrefix(p, "-") {
		p = "./" + p
	}
	return Shell(p)
}

// Shell writes words as a shell takes them in a command: quoted where they have to be.
func Shell(words ...string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_./,:@%+-=", r)
	}
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; w == "" || strings.ContainsFunc(w, special) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// List joins words: a, b and c.
func List(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// Count writes a number of things: 1 trial, 2 trials.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "x") {
		what += "e"
	}
	return strconv.Itoa(n) + " " + what + "s"
}
