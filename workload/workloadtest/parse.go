package workloadtest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// responses checks, for each case, that the roles' outputs together give every declared response
// once, in the declared unit.
func (s *suite) responses() (bad []string) {
	for _, c := range s.cases {
		if c.Refused {
			continue
		}
		fail := func(format string, args ...any) {
			bad = append(bad, fmt.Sprintf("case %s: ", c.Name)+fmt.Sprintf(format, args...))
		}
		v, err := param.Fill(s.w.Params(), c.Params)
		if err != nil {
			fail("%v", err)
			continue
		}
		roles, err := s.w.Roles(v)
		if err != nil {
			fail("%v", err)
			continue
		}
		for _, r := range roles {
			// A server with a Probe may print nothing.
			silent := r.Background && r.Probe != nil
			if _, ok := c.Outputs[r.Name]; !ok && !silent {
				fail("the output of role %s is not given", r.Name)
			}
		}
		var all record.Reading
		for _, out := range s.outputs {
			if !strings.HasPrefix(out.name, c.Name+"/") {
				continue
			}
			r, err := s.w.Parse(out.role, v, bytes.NewReader(out.data))
			if err != nil {
				fail("Parse of the real output of %s: %v", out.role, err)
			}
			all.Add(r)
		}
		for _, p := range soundReading(s.w.Responses(v), all) {
			fail("%s", p)
		}
		for _, p := range following(s.w.Responses(v), roles, all) {
			fail("%s", p)
		}
		for _, want := range s.w.Responses(v) {
			n := 0
			for _, got := range all.Samples {
				if got.Name == want.Name && got.Labels == "" {
					n++
				}
			}
			times := 1
			if slices.Contains(c.Lacks, want.Name) {
				times = 0
			}
			if n != times {
				fail("response %s occurs %d times without labels, want %d", want.Name, n, times)
			}
		}
	}
	return bad
}

// following checks the series that follow a response (record.LabelResponse): the response is
// declared, has the same unit and only one series, and its value lies among the points of the
// measured time.
func following(declared []record.Response, roles []workload.Role, r record.Reading) (bad []string) {
	seen := map[string]bool{}
	var warmup time.Duration
	for _, x := range roles {
		if !x.Background {
			warmup = max(warmup, x.Warmup)
		}
	}
	for _, x := range r.Series {
		name := x.Labels.Get(record.LabelResponse)
		if name == "" {
			continue
		}
		id := fmt.Sprintf("series %s{%s}", x.Name, x.Labels)
		i := slices.IndexFunc(declared, func(d record.Response) bool { return d.Name == name })
		switch {
		case i < 0:
			bad = append(bad, fmt.Sprintf("%s follows %s, which is not a declared response", id, name))
			continue
		case seen[name]:
			bad = append(bad, fmt.Sprintf("%s: another series follows %s", id, name))
		case x.Unit != declared[i].Unit:
			bad = append(bad, fmt.Sprintf("%s is in %s, its response in %s", id, x.Unit, declared[i].Unit))
		}
		seen[name] = true
		var in []float64
		for j := range min(len(x.T), len(x.V)) {
			if x.T[j] > warmup {
				in = append(in, x.V[j])
			}
		}
		j := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name && s.Labels == "" })
		if len(in) == 0 || j < 0 {
			continue
		}
		// Points are rounded, and the first or last may be missing.
		const room = 0.05
		if got, lo, hi := r.Samples[j].Value, slices.Min(in), slices.Max(in); got < lo*(1-room) || got > hi*(1+room) {
			bad = append(bad, fmt.Sprintf("%s goes from %g to %g in the measured time, the response is %g", id, lo, hi, got))
		}
	}
	return bad
}

// soundReading checks what must hold for any reading.
func soundReading(declared []record.Response, r record.Reading) (bad []string) {
	for _, x := range r.Samples {
		id := fmt.Sprintf("sample %s{%s}", x.Name, x.Labels)
		if x.Name == "" || !slices.Contains(units, x.Unit) {
			bad = append(bad, fmt.Sprintf("%s: no name, or %q is not a base unit", id, x.Unit))
		}
		if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
			bad = append(bad, fmt.Sprintf("%s is %v", id, x.Value))
		}
		i := slices.IndexFunc(declared, func(d record.Response) bool { return d.Name == x.Name })
		if i < 0 || x.Labels != "" {
			continue
		}
		if d := declared[i]; x.Unit != d.Unit {
			bad = append(bad, fmt.Sprintf("%s is in %s, declared in %s", id, x.Unit, d.Unit))
		} else if x.Value < 0 && d.Better != record.Neither {
			bad = append(bad, fmt.Sprintf("%s is negative: %v", id, x.Value))
		}
	}
	for _, x := range r.Series {
		id := fmt.Sprintf("series %s{%s}", x.Name, x.Labels)
		if len(x.T) != len(x.V) {
			bad = append(bad, fmt.Sprintf("%s has %d times and %d values", id, len(x.T), len(x.V)))
		}
		if !slices.IsSorted(x.T) {
			bad = append(bad, id+": the times fall")
		}
		if slices.ContainsFunc(x.V, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			bad = append(bad, id+" has a value that is not a number")
		}
	}
	for _, x := range r.Histograms {
		if _, err := hdrhistogram.Decode(x.Encoded); err != nil {
			bad = append(bad, fmt.Sprintf("histogram %s cannot be decoded: %v", x.Name, err))
		}
		if x.Scale <= 0 || math.IsInf(x.Scale, 0) || !slices.Contains(units, x.Unit) {
			bad = append(bad, fmt.Sprintf("histogram %s: scale %v, unit %q", x.Name, x.Scale, x.Unit))
		}
		if _, err := base64.StdEncoding.DecodeString(string(x.Encoded)); err != nil {
			bad = append(bad, fmt.Sprintf("histogram %s is not base64: %v", x.Name, err))
		}
	}
	for _, x := range r.Warnings {
		if x.Code == "" || x.Text == "" || strings.Contains(x.Code, " ") {
			bad = append(bad, fmt.Sprintf("warning %+v: a code of one word and a text are needed", x))
		}
	}
	return bad
}

// parse calls Parse and reports a panic, slowness or an invalid reading.
func (s *suite) parse(out captured, in io.Reader) (bad []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			bad = append(bad, fmt.Sprintf("%s: Parse panics: %v", out.name, p))
		}
	}()
	start := time.Now()
	r, err := s.w.Parse(out.role, out.values, in)
	if d := time.Since(start); d > 20*time.Second {
		bad = append(bad, fmt.Sprintf("%s: Parse took %v", out.name, d.Round(time.Second)))
	}
	if err != nil {
		return bad, err
	}
	for _, p := range soundReading(s.w.Responses(out.values), r) {
		bad = append(bad, out.name+": "+p)
	}
	return bad, nil
}

// truncated cuts each output at 64 places, as a killed program or a full disk would.
func (s *suite) truncated() (bad []string) {
	for _, out := range s.outputs {
		for i := 1; i < 64; i++ {
			n := len(out.data) * i / 64
			b, _ := s.parse(out, bytes.NewReader(out.data[:n]))
			for _, p := range b {
				bad = append(bad, fmt.Sprintf("the first %d bytes: %s", n, p))
			}
		}
	}
	return bad
}

// altered changes, repeats and removes pieces, always the same ones.
func (s *suite) altered() (bad []string) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed: a failure must come again
	for _, out := range s.outputs {
		for range 200 {
			b := slices.Clone(out.data)
			for range 1 + rng.IntN(4) {
				if len(b) < 2 {
					break
				}
				i := rng.IntN(len(b) - 1)
				j := min(len(b), i+1+rng.IntN(16))
				switch rng.IntN(4) {
				case 0:
					b[i] = byte(rng.IntN(256)) //nolint:gosec // within a byte
				case 1:
					b = slices.Delete(b, i, j)
				case 2:
					b = slices.Insert(b, i, slices.Clone(b[i:j])...)
				case 3:
					b = slices.Insert(b, i, []byte("-1e999")...)
				}
			}
			p, _ := s.parse(out, bytes.NewReader(b))
			bad = append(bad, p...)
		}
	}
	return bad
}

func (s *suite) empty() (bad []string) {
	for _, out := range s.outputs {
		for _, text := range []string{"", "\n", "   \n\n"} {
			b, err := s.parse(out, strings.NewReader(text))
			bad = append(bad, b...)
			if err == nil {
				bad = append(bad, fmt.Sprintf("%s: Parse returns no error for the empty output %q", out.name, text))
			} else if len(strings.Fields(err.Error())) < 4 {
				bad = append(bad, fmt.Sprintf("%s: the error for an empty output is not helpful: %q", out.name, err))
			}
		}
	}
	return bad
}

// repeating is an endless output. Short reads may split the text, which does not matter: only the
// length does.
type repeating struct {
	text []byte
	read int64
}

func (r *repeating) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], r.text)
	}
	r.read += int64(n)
	return n, nil
}

// endless checks that an endless output gives an error after a bounded read (output.Read does
// that).
func (s *suite) endless() (bad []string) {
	for i, text := range []string{"x", "[", "1\n"} {
		out := s.outputs[i%len(s.outputs)]
		r := &repeating{text: bytes.Repeat([]byte(text), 1<<15)}
		b, err := s.parse(out, r)
		bad = append(bad, b...)
		if err == nil {
			bad = append(bad, fmt.Sprintf("%s: Parse returns no error for an endless output of %q", out.name, text))
		}
		if r.read > 2*output.Limit {
			bad = append(bad, fmt.Sprintf("%s: Parse read %d bytes of an endless output, more than twice output.Limit", out.name, r.read))
		}
	}
	return bad
}
