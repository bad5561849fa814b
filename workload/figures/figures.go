// Package figures reads what a program of the user's own printed: numbers that a regular
// expression or a path in JSON finds, and the reports of benchmark tools that it knows by name.
//
// The data path: 1. Parse reads the parameters figures and format; 2. Responses says which
// figures a trial has; 3. Read finds them in the output of one run, in base units; 4. Add makes
// samples of those of all runs.
package figures

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/tidwall/gjson"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// Names of the parameters.
const (
	ParamFigures = "figures"
	ParamFormat  = "format"
)

// Params are the parameters of a workload that has figures.
func Params() []param.Param {
	return []param.Param{
		{Name: ParamFigures, Type: param.String, Help: "figures in the standard output: words NAME[UNIT,BETTER]=PATTERN, quoted as in a shell; PATTERN is a regular expression, json:PATH, or with a format what selects a benchmark"},
		{Name: ParamFormat, Type: param.Enum, Default: noFormat, Words: append([]string{noFormat}, Formats()...), Help: "of the standard output, as a benchmark tool writes it"},
	}
}

// Figure is one number that is looked for.
type Figure struct {
	Name   string
	Unit   record.Unit
	Better record.Better

	factor  float64        // from the unit that the output has to the base unit
	written string         // the pattern
	regex   *regexp.Regexp // one of these three
	path    string         // of JSON
	bench   *selector      // with a format
}

// Set is what is looked for in one output.
type Set struct {
	format  format // "" for none
	figures []Figure
}

// Bench is the response of a format without figures: the geometric mean over its benchmarks.
const Bench = "benchmark"

// most bounds the figures of a workload.
const most = 32

var nameRE = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

// Parse reads the two parameters. taken are names that a figure must not have.
func Parse(v param.Values, taken ...string) (Set, error) {
	s := Set{}
	if f := v.Str(ParamFormat); f != noFormat {
		s.format = format(f)
	}
	words, err := shellquote.Split(v.Str(ParamFigures))
	if err != nil {
		return s, fmt.Errorf("figures: %q cannot be split into words: %w; close the quotes", v.Str(ParamFigures), err)
	}
	if len(words) > most {
		return s, fmt.Errorf("figures: there are %d; write at most %d", len(words), most)
	}
	for _, w := range words {
		f, err := parseOne(w, s.format)
		if err != nil {
			return s, fmt.Errorf("figures: %q: %w", w, err)
		}
		used := func(o Figure) bool { return o.Name == f.Name }
		if slices.Contains(taken, f.Name) || slices.ContainsFunc(s.figures, used) {
			return s, fmt.Errorf("figures: the name %q is taken; choose another", f.Name)
		}
		s.figures = append(s.figures, f)
	}
	if s.format != "" && len(words) == 0 {
		s.figures = []Figure{{Name: Bench, Unit: record.Second, Better: record.Lower, factor: 1}}
	}
	return s, nil
}

// parseOne reads NAME[UNIT,BETTER]=PATTERN.
func parseOne(word string, of format) (Figure, error) {
	head, pattern, ok := strings.Cut(word, "=")
	if !ok || pattern == "" {
		return Figure{}, errors.New("it has no pattern; write NAME[UNIT,BETTER]=PATTERN, such as rate[1/s,higher]='([0-9.]+) requests'")
	}
	name, inside, bracket := strings.Cut(head, "[")
	if bracket {
		if inside, ok = strings.CutSuffix(inside, "]"); !ok {
			return Figure{}, errors.New("the bracket after the name is not closed; write NAME[UNIT,BETTER]=PATTERN")
		}
	}
	if !nameRE.MatchString(name) {
		return Figure{}, fmt.Errorf("%q is not a name; write small letters and digits, with - or _ between them", name)
	}
	f := Figure{Name: name, Unit: record.Count, factor: 1, written: pattern}
	unit, better, _ := strings.Cut(inside, ",")
	if unit = strings.TrimSpace(unit); unit != "" {
		u, ok := units()[unit]
		if !ok {
			return f, fmt.Errorf("%q is not a unit; write s, ms, us, ns, B, KiB, MiB, GiB, 1/s, B/s, MB/s, Mbit/s, %%, cores or count", unit)
		}
		f.Unit, f.factor = u.unit, u.factor
	}
	switch b := record.Better(strings.TrimSpace(better)); b {
	case record.Higher, record.Lower, record.Neither:
		f.Better = b
	case "":
		f.Better = usual(f.Unit)
	default:
		return f, fmt.Errorf("%q is not a direction; write higher, lower or neither", b)
	}
	var err error
	switch path, isJSON := strings.CutPrefix(pattern, "json:"); {
	case of != "":
		f.bench, err = parseSelector(pattern)
		if err == nil && unit == "" {
			f.Unit, f.Better = of.unitOf(f.bench.metric)
			if b := strings.TrimSpace(better); b != "" {
				f.Better = record.Better(b)
			}
		}
	case isJSON:
		f.path = path
		if path == "" {
			err = errors.New("json: needs a path, such as json:jobs.0.read.iops")
		}
	default:
		if f.regex, err = regexp.Compile(pattern); err == nil && f.regex.NumSubexp() > 1 {
			err = errors.New("it has more than one group; write (?:...) for those that are not the number")
		}
	}
	return f, err
}

type unit struct {
	unit   record.Unit
	factor float64
}

// units are those of outputs, with their base units.
func units() map[string]unit {
	out := map[string]unit{
		"s": {record.Second, 1}, "sec": {record.Second, 1}, "ms": {record.Second, 1e-3}, "us": {record.Second, 1e-6}, "µs": {record.Second, 1e-6},
		"ns": {record.Second, 1e-9}, "min": {record.Second, 60}, "h": {record.Second, 3600},
		"1/s": {record.PerSecond, 1}, "/s": {record.PerSecond, 1}, "k/s": {record.PerSecond, 1e3}, "M/s": {record.PerSecond, 1e6},
		"1/min": {record.PerSecond, 1.0 / 60},
		"cores": {record.Cores, 1}, "count": {record.Count, 1}, "1": {record.Fraction, 1}, "%": {record.Fraction, 1e-2},
	}
	for name, n := range map[string]float64{
		"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	} {
		out[name] = unit{record.Byte, n}
		out[name+"/s"] = unit{record.BytesPerSecond, n}
	}
	for name, n := range map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9} {
		out[name] = unit{record.BytesPerSecond, n / 8}
	}
	return out
}

// usual is the better direction of a unit, where nothing else is said.
func usual(u record.Unit) record.Better {
	switch u {
	case record.PerSecond, record.BytesPerSecond:
		return record.Higher
	case record.Second, record.Byte:
		return record.Lower
	}
	return record.Neither
}

// Empty reports whether nothing is looked for.
func (s Set) Empty() bool { return len(s.figures) == 0 }

// Responses are the figures of a trial, in the order that they are written.
func (s Set) Responses() []record.Response {
	var out []record.Response
	for _, f := range s.figures {
		help := "as found in the output by " + f.written
		if f.written == "" {
			help = "time of an operation, the geometric mean over all benchmarks in the output"
		}
		out = append(out, record.Response{Name: f.Name, Unit: f.Unit, Better: f.Better, Help: help})
	}
	return out
}

// Found is what one output has.
type Found struct {
	Values  []float64 // of the figures, in base units
	Entries []Entry   // of a format
}

// Read finds the figures in the output of one run.
func (s Set) Read(text string) (Found, error) {
	var out Found
	if s.format != "" {
		var err error
		if out.Entries, err = s.format.read(text); err != nil {
			return out, fmt.Errorf("the output is not %s: %w", s.format, err)
		}
		if len(out.Entries) == 0 {
			return out, fmt.Errorf("there is no benchmark of format %s in the output", s.format)
		}
	}
	for i := range s.figures {
		x, err := s.figures[i].find(text, out.Entries)
		if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			err = fmt.Errorf("%g is not a number to compare", x)
		}
		if err != nil {
			return out, fmt.Errorf("figure %s: %w", s.figures[i].Name, err)
		}
		out.Values = append(out.Values, x)
	}
	return out, nil
}

func (f *Figure) find(text string, entries []Entry) (float64, error) {
	switch {
	case f.regex != nil:
		all := f.regex.FindAllStringSubmatch(text, -1)
		if len(all) == 0 {
			return 0, fmt.Errorf("nothing in the output matches %q; write a regular expression that matches one of its lines, with ( ) around the number", f.written)
		}
		last := all[len(all)-1] // progress comes before the result
		return f.number(last[len(last)-1])
	case f.path != "":
		doc, ok := document(text)
		if !ok {
			return 0, errors.New("the output is not JSON")
		}
		r := gjson.Get(doc, f.path)
		if !r.Exists() {
			return 0, fmt.Errorf("the JSON in the output has nothing at %q", f.path)
		}
		return f.number(r.String())
	case f.bench != nil:
		x, err := f.bench.find(entries)
		return x * f.factor, err
	}
	return geomean(entries)
}

// number reads a number, with commas between thousands as some programs print them.
func (f *Figure) number(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(text), ",", ""), 64)
	if err != nil {
		return 0, fmt.Errorf("%.100q, which %q found, is not a number; put ( ) around the number", text, f.written)
	}
	return x * f.factor, nil
}

// mostTries bounds the places at which JSON may begin: to look at each takes time by what follows.
const mostTries = 100

// document is the JSON of an output, which other lines may precede.
func document(text string) (string, bool) {
	for at, tries := 0, 0; at < len(text) && tries < mostTries; {
		if c := text[at]; c == '{' || c == '[' {
			tries++
			doc := strings.TrimSpace(text[at:])
			if gjson.Valid(doc) {
				return doc, true
			}
		}
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return "", false
}

// Add adds the figures of all runs to a reading: for each the median, as output.Repeats does it.
// Benchmarks of a format that no figure selects are samples with labels. ends are when the runs
// ended.
func (s Set) Add(rd *record.Reading, ends []time.Duration, runs []Found) {
	for i, f := range s.figures {
		var xs []float64
		for _, r := range runs {
			xs = append(xs, r.Values[i])
		}
		output.Repeats(rd, f.Name, f.Unit, ends, xs)
	}
	if len(runs) == 0 || s.format == "" || len(s.figures) == 0 || s.figures[0].Name != Bench {
		return
	}
	for _, e := range runs[len(runs)-1].Entries {
		if len(rd.Samples) > 1000 {
			return
		}
		if x, ok := e.time(); ok {
			rd.Samples = append(rd.Samples, record.Sample{Name: Bench, Labels: record.MakeLabels("benchmark", e.Name), Unit: record.Second, Kind: record.Value, Value: x})
		}
	}
}
