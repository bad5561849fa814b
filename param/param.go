// Package param describes parameters of workloads, sandboxes and collectors:
// their names, types, units, defaults and bounds, and reads their values from
// text. One description serves the study file's checks, `tare list`, the JSON
// Schema and the documentation. It imports nothing of ours.
package param

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Type is the type of a parameter's value.
type Type string

// Types of parameter. Sizes take B, K, KiB, M, MiB, G, GiB, T, TiB (1024-based;
// small letters too) and kB, MB, GB, TB (1000-based); times take ns, us, ms, s, m, h.
const (
	Int      Type = "integer"
	Float    Type = "number"
	Bool     Type = "boolean"
	Size     Type = "size"
	Duration Type = "time"
	Rate     Type = "rate" // of a link: bit, kbit, Mbit, Gbit a second, 1000-based
	Enum     Type = "word"
	String   Type = "text"
	List     Type = "list"    // of texts; in Values one a line
	Map      Type = "mapping" // of names to texts; in Values one NAME=TEXT a line
	CPUs     Type = "cpus"    // a cpuset list such as 0-1,3
	File     Type = "file"    // in a study, a path beside the study file; in Values, the file's text
)

// Param describes one parameter. Min and Max bound numbers in base units
// (bytes, seconds; for a rate, bytes a second) and hold only if Max > Min.
type Param struct {
	Name    string   `json:"name"`
	Type    Type     `json:"type"`
	Default string   `json:"default"`
	Min     float64  `json:"min,omitempty"`
	Max     float64  `json:"max,omitempty"`
	Words   []string `json:"words,omitempty"` // of an Enum; also accepted in place of a number ("none")
	Help    string   `json:"help"`
	// Storage says that a parameter of a sandbox has no effect on workloads that keep nothing on a disk.
	Storage bool `json:"-"`
	// Offered says that it is how many requests a second are due, however fast they are answered.
	Offered bool `json:"-"`
	// Milli says that a Float may also be in thousandths, as Kubernetes writes processors: 500m is 0.5.
	Milli bool `json:"-"`
	// Replaces is the parameter in whose place it is, unless it has its default. A study has no use for both.
	Replaces string `json:"-"`
	// Valid says what is wrong with a text that suits the type: the whole value or, of a List or
	// Map, one element. Nil: nothing.
	Valid func(text string) error `json:"-"`
	// Names finds the files that a File names. If it is set, the value is a Bundle. Nil: a file stands alone.
	Names func(text string) []Named `json:"-"`
}

// Values holds checked texts by parameter name. Defaults are filled in by
// Fill, so that the getters find every declared parameter.
type Values map[string]string

// Check reads text as p's type and returns it as written, without the spaces
// around it; thousandths (Milli) are returned as a number. The error says what is wrong and what to write.
func (p Param) Check(text string) (string, error) {
	switch p.Type {
	case File:
		return text, nil // it may be the file itself, whose lines are counted
	case List, Map:
		for e := range strings.Lines(text) {
			if err := p.Element(strings.TrimSuffix(e, "\n")); err != nil {
				return "", err
			}
		}
		return text, nil
	}
	text = strings.TrimSpace(text)
	if slices.Contains(p.Words, text) {
		return text, nil
	}
	var n float64
	var err error
	switch p.Type {
	case Enum:
		return "", fmt.Errorf("%q is not a %s; write one of %s", text, p.Name, strings.Join(p.Words, ", "))
	case String:
		return text, p.Element(text)
	case CPUs:
		if _, err := ParseCPUs(text); err != nil {
			return "", err
		}
		return text, nil
	case Bool:
		if text == "true" || text == "false" {
			return text, nil
		}
		return "", fmt.Errorf("%q is not a truth value; write true or false", text)
	case Int:
		var i int64
		i, err = strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fmt.Errorf("%q is not a whole number; write a whole number%s", text, p.bounds())
		}
		n = float64(i)
	case Float:
		if m, err := strconv.ParseUint(strings.TrimSuffix(text, "m"), 10, 32); err == nil && p.Milli && strings.HasSuffix(text, "m") {
			text = strconv.FormatFloat(float64(m)/1000, 'f', -1, 64)
		}
		n, err = strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return "", fmt.Errorf("%q is not a number; write a number%s", text, p.bounds())
		}
	case Size:
		var b int64
		if b, err = ParseSize(text); err != nil {
			return "", err
		}
		n = float64(b)
	case Duration:
		var d time.Duration
		if d, err = ParseDuration(text); err != nil {
			return "", err
		}
		n = d.Seconds()
	case Rate:
		var b int64
		if b, err = ParseRate(text); err != nil {
			return "", err
		}
		n = float64(b)
	default:
		return "", fmt.Errorf("parameter %s has the unknown type %q", p.Name, p.Type)
	}
	if p.Max > p.Min && (n < p.Min || n > p.Max) {
		return "", fmt.Errorf("%s = %s is out of range; write a value from %s to %s", p.Name, text, p.format(p.Min), p.format(p.Max))
	}
	return text, nil
}

// Element checks one element of a List or Map, NAME=TEXT of a Map. The empty text is the absence of
// one.
func (p Param) Element(text string) error {
	if p.Valid == nil || text == "" {
		return nil
	}
	return p.Valid(text)
}

// bounds describes the numbers and words that p accepts.
func (p Param) bounds() string {
	s := ""
	if p.Max > p.Min {
		s = " from " + p.format(p.Min) + " to " + p.format(p.Max)
	}
	if p.Milli {
		s += ", thousandths such as 500m,"
	}
	if len(p.Words) > 0 {
		s += " or " + strings.Join(p.Words, ", ")
	}
	return s
}

func (p Param) format(n float64) string {
	switch p.Type {
	case Size:
		return FormatSize(int64(n))
	case Duration:
		return FormatDuration(time.Duration(n * float64(time.Second)))
	case Rate:
		return FormatRate(int64(n))
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// Find returns the parameter of that name.
func Find(ps []Param, name string) (Param, bool) {
	for _, p := range ps {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// Fill returns v with every value checked, and with the defaults of ps for missing ones. A
// name that ps does not have is an error.
func Fill(ps []Param, v Values) (Values, error) {
	out := make(Values, len(ps))
	for _, p := range ps {
		out[p.Name] = p.Default
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, ok := Find(ps, name)
		if !ok {
			return nil, fmt.Errorf("there is no parameter %q; %s", name, Suggest(name, Names(ps)))
		}
		c, err := p.Check(v[name])
		if err != nil {
			return nil, err
		}
		out[name] = c
	}
	return out, nil
}

// Names lists the names of ps.
func Names(ps []Param) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Name
	}
	return out
}

// The getters below read values that Fill has checked; a value that is missing
// or a word such as "none" reads as zero.

// Str returns the text of a parameter.
func (v Values) Str(name string) string { return v[name] }

// List returns the texts of a List.
func (v Values) List(name string) []string {
	if v[name] == "" {
		return nil
	}
	return strings.Split(v[name], "\n")
}

// Map returns the texts of a Map by name.
func (v Values) Map(name string) map[string]string {
	out := map[string]string{}
	for _, l := range v.List(name) {
		key, text, _ := strings.Cut(l, "=")
		out[key] = text
	}
	return out
}

// Int returns a whole number.
func (v Values) Int(name string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(v[name]))
	return n
}

// Float returns a number.
func (v Values) Float(name string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSpace(v[name]), 64)
	return n
}

// Bool returns a truth value.
func (v Values) Bool(name string) bool { return v[name] == "true" }

// Size returns bytes.
func (v Values) Size(name string) int64 {
	n, _ := ParseSize(v[name])
	return n
}

// Rate returns bytes a second.
func (v Values) Rate(name string) int64 {
	n, _ := ParseRate(v[name])
	return n
}

// Duration returns a time.
func (v Values) Duration(name string) time.Duration {
	d, _ := ParseDuration(v[name])
	return d
}
