package study

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/record"
)

// Objective is what a trial must show: a response below a limit, or above it.
type Objective struct {
	Response string
	Above    bool
	Limit    float64 // in the response's unit
	Text     string  // as written, without spaces
}

// Met reports whether a trial with this value of the response meets the objective.
func (o *Objective) Met(value float64) bool {
	if o.Above {
		return value > o.Limit
	}
	return value < o.Limit
}

var objectivePattern = regexp.MustCompile(`^\s*([a-z][a-z0-9_.-]*)\s*([<>])\s*(\S+)\s*$`)

// objective reads what is asked of a load. What the limit means is known with the responses.
func (d *draft) objective(p pair, keys map[string]pair) {
	s := &d.study.Stop
	d.without(keys, p, "objective", "fixed", "looks", "width", "tune", "mix", "factors")
	s.Fixed, s.Looks, s.Width, s.Tune = 0, nil, 0, 0
	t, ok := d.text(p.val, "objective")
	if !ok {
		return
	}
	m := objectivePattern.FindStringSubmatch(t)
	if m == nil {
		d.bad(p.val, "write a response, < or >, and a limit: latency_p99<2ms", "objective %q is not possible", t)
		return
	}
	s.Objective = &Objective{Response: m[1], Above: m[2] == ">", Text: m[1] + m[2] + m[3]}
}

// objectiveOf makes the objective's response the first of each stratum, by which the plan decides, and reads the limit in its
// unit. The levels of the compared factor must be loads, and rise.
func (d *draft) objectiveOf(n *yaml.Node) {
	o := d.study.Stop.Objective
	if o == nil {
		return
	}
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		w := d.loads[s.Workload]
		at := slices.Index(s.Responses, o.Response)
		if at < 0 {
			d.bad(n, d.addResponse(w, s), "%s has no response %q", s.Shared, o.Response)
			return
		}
		if !d.offered(n, w) {
			return
		}
		s.Responses = append([]string{o.Response}, slices.Delete(slices.Clone(s.Responses), at, at+1)...)
		s.Better = d.better(w, s)
		if !d.limitOf(n, w, s) || !d.rising(n, s) {
			return
		}
	}
}

// addResponse says how a stratum gets the objective's response: the workload may have it, but not say so in its responses.
func (d *draft) addResponse(w *load, s *Stratum) string {
	o := d.study.Stop.Objective.Response
	has := false
	if v, err := w.values(d.study, s.Shared); err == nil {
		has = slices.ContainsFunc(d.study.responsesIn(w.info, v, s.Cells...), func(r record.Response) bool { return r.Name == o })
	}
	if has {
		return fmt.Sprintf("add it to the workload: responses: [%s]", strings.Join(append(slices.Clone(s.Responses), o), ", "))
	}
	return param.Suggest(o, s.Responses)
}

// offered refuses an objective of a factor that is not a rate at which a workload's requests are due. Where a request waits for the
// answers to others, a slower sandbox is asked less, and its latency hides that it is overloaded. A victim is asked at a rate of its own,
// whatever the load beside it.
func (d *draft) offered(n *yaml.Node, w *load) bool {
	is := func(p param.Param) bool { return p.Offered }
	i := slices.IndexFunc(w.info.Params, is)
	switch {
	case strings.HasPrefix(d.study.Stop.Objective.Response, record.VictimPrefix):
		return true
	case d.cat.Stored || slices.ContainsFunc(w.info.Params, func(p param.Param) bool { return p.Offered && p.Name == d.study.Compare }):
		return true
	case i < 0:
		d.bad(n, "tune a workload that has, such as net with mode: rr, http.nginx with load: open, or fio", "an objective needs an offered rate, and workload %q of the kind %s has none", w.label, w.kind)
		return false
	}
	rate := w.info.Params[i].Name
	open := ""
	if slices.ContainsFunc(w.info.Params, func(p param.Param) bool { return p.Name == "load" && slices.Contains(p.Words, "open") }) {
		open = ", with load: open"
	}
	d.bad(n, fmt.Sprintf("vary the offered rate instead: write %s instead of %s%s", rate, d.study.Compare, open),
		"%s does not set how many requests are due per second: a slower sandbox gets fewer requests, so a level of it is not a fixed load", d.study.Compare)
	return false
}

// limitOf reads the limit in the unit that the response has in a stratum.
func (d *draft) limitOf(n *yaml.Node, w *load, s *Stratum) bool {
	o := d.study.Stop.Objective
	v, err := w.values(d.study, s.Shared)
	if err != nil {
		return true // said where the values are checked
	}
	var unit record.Unit
	for _, r := range d.study.responsesIn(w.info, v, s.Cells...) {
		if r.Name == o.Response {
			unit = r.Unit
		}
	}
	text := o.Text[len(o.Response)+1:]
	limit, err := limitIn(unit, text)
	if err != nil {
		d.refuse(n, "objective: ", err, "write another limit")
		return false
	}
	o.Limit = limit
	return true
}

// limitIn reads a limit in a unit: a time, a size, a rate, or a number.
func limitIn(unit record.Unit, text string) (float64, error) {
	switch unit {
	case record.Second:
		t, err := param.ParseDuration(text)
		return t.Seconds(), err
	case record.Byte:
		n, err := param.ParseSize(text)
		return float64(n), err
	case record.BytesPerSecond:
		n, err := param.ParseRate(text)
		return float64(n), err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number; write one, such as 1000", text)
	}
	return v, nil
}

// rising refuses levels that are not loads in rising order.
func (d *draft) rising(n *yaml.Node, s *Stratum) bool {
	last := 0.0
	for _, c := range s.Cells {
		level, _ := c.Get(d.study.Compare)
		load, err := strconv.ParseFloat(level, 64)
		if err != nil || !(load > last) {
			d.bad(n, "compare the load, with rising levels: compare: rate, and rate: [1000, 2000, 4000]", "the levels of %s are not loads in rising order: %s", d.study.Compare, strings.Join(d.factors[d.compare].levels, ", "))
			return false
		}
		last = load
	}
	return true
}

// Loads are the levels of a stratum, where the study has an objective.
func (s *Study) Loads(stratum int) []float64 {
	var out []float64
	for _, c := range s.Strata[stratum].Cells {
		level, _ := c.Get(s.Compare)
		load, _ := strconv.ParseFloat(level, 64) // checked when the study was read
		out = append(out, load)
	}
	return out
}
