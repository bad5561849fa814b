package study

import (
	"strings"
	"testing"

	"tare/param"
	"tare/record"
)

// TestObjective: an objective names a response and a limit in its unit; the response then is the first, whose direction the
// stratum has; the levels of the compared factor are loads. Other rules exclude it, and an argument replaces them.
func TestObjective(t *testing.T) {
	const head = "study: s\ncompare: rate\nfactors: {sandbox: [vm]}\nworkloads:\n  a: {kind: net, mode: rr, rate: [500, 1000, 2000]}\n"
	for _, c := range []struct {
		stop  string
		sets  []string
		want  Objective
		loads int
	}{
		{"stop: {objective: latency_p50<2ms}\n", nil, Objective{"latency_p50", false, 0.002, "latency_p50<2ms"}, 3},
		{"stop: {objective: ' rate > 1500 '}\n", nil, Objective{"rate", true, 1500, "rate>1500"}, 3},
		{"stop: {tune: best, mix: {a: 1}}\n", []string{"stop.objective=latency<1500us", "rate=100,200,400,800"}, Objective{"latency", false, 0.0015, "latency<1500us"}, 4},
		{"stop: {rule: adaptive}\n", []string{"stop.objective=latency<1s"}, Objective{"latency", false, 1, "latency<1s"}, 3},
	} {
		s, err := Parse("t.yaml", []byte(head+c.stop), testCatalogue(), c.sets)
		if err != nil {
			t.Errorf("%q %v: %v", c.stop, c.sets, err)
			continue
		}
		if o := s.Stop.Objective; o == nil || *o != c.want || !s.Stop.Searches() || s.Stop.Tune != 0 {
			t.Errorf("%q %v: %+v", c.stop, c.sets, o)
		}
		if w := s.WorkloadOf(0); w.Responses[0] != c.want.Response || len(w.Responses) != 3 || len(s.Loads(0)) != c.loads {
			t.Errorf("%q %v: responses %v, loads %v", c.stop, c.sets, w.Responses, s.Loads(0))
		}
		if better := string(s.Strata[0].Better); (better == "higher") != c.want.Above {
			t.Errorf("%q %v: better is %s", c.stop, c.sets, better)
		}
	}
	if s, err := Parse("t.yaml", []byte(head+"stop: {objective: latency<1s}\n"), testCatalogue(), []string{"stop.fixed=3"}); err != nil || s.Stop.Objective != nil || s.Stop.Fixed != 3 {
		t.Errorf("replaced by fixed: %v", err)
	}
	if o := (Objective{Limit: 2}); !o.Met(1) || o.Met(2) || o.Met(3) {
		t.Error("below the limit")
	}
	if o := (Objective{Limit: 2, Above: true}); o.Met(1) || o.Met(2) || !o.Met(3) {
		t.Error("above the limit")
	}
	one := strings.Replace(head, "mode: rr", "mode: rr, responses: [latency]", 1)
	if _, err := Parse("t.yaml", []byte(one+"stop: {objective: rate>1500}\n"), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), `has no response "rate"; add it to the workload: responses: [latency, rate]`) {
		t.Errorf("of a response that the workload has and leaves out: %v", err)
	}
	for text, want := range map[string]string{
		"stop: {objective: latency}\n":                  `t.yaml:6:19: objective "latency" is not possible; write a response, < or >, and a limit: latency_p99<2ms`,
		"stop: {objective: latency<2ms, tune: best}\n":  `t.yaml:6:32: tune has no effect together with objective (line 6); remove tune or objective`,
		"stop: {objective: latency<2ms, mix: {a: 1}}\n": `t.yaml:6:32: mix has no effect together with objective (line 6); remove mix or objective`,
		"stop: {objective: latency_p5<2ms}\n":           `t.yaml:6:19: workload=a,sandbox=vm has no response "latency_p5"`,
		"stop: {objective: latency<2}\n":                `t.yaml:6:19: objective: "2" is not a time`,
		"stop: {objective: rate>much}\n":                `t.yaml:6:19: objective: "much" is not a number; write one, such as 1000`,
	} {
		if _, err := Parse("t.yaml", []byte(head+text), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for rates, want := range map[string]string{
		"[500, 2000, 1000]": `t.yaml:6:19: the levels of rate are not loads in rising order: 500, 2000, 1000; compare the load`,
		"[0, 1000]":         `the levels of rate are not loads in rising order`,
	} {
		text := strings.Replace(head, "[500, 1000, 2000]", rates, 1) + "stop: {objective: latency<2ms}\n"
		if _, err := Parse("t.yaml", []byte(text), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", rates, err, want)
		}
	}
}

// TestObjectiveOfRate: an objective is of a rate at which requests are due. A factor that sets how many are in flight is refused with what to vary
// instead, and so is a workload without such a rate; results of an earlier tare are read.
func TestObjectiveOfRate(t *testing.T) {
	cat := testCatalogue()
	cat.Workloads["web"] = WorkloadInfo{
		Params: []param.Param{
			{Name: "load", Type: param.Enum, Default: "closed", Words: []string{"closed", "open"}, Help: "loop"},
			{Name: "connections", Type: param.Int, Default: "1", Min: 1, Max: 100, Help: "kept open"},
			{Name: "rate", Type: param.Float, Offered: true, Default: "0", Max: 1e6, Help: "requests a second"},
		},
		Responses: func(param.Values) []record.Response {
			return []record.Response{{Name: "latency", Unit: record.Second, Better: record.Lower}}
		},
	}
	closed := cat.Workloads["web"]
	closed.Params = closed.Params[:2]
	cat.Workloads["closed"] = closed
	file := func(kind, factor string) string {
		return "study: s\ncompare: " + factor + "\nfactors: {sandbox: [vm]}\nworkloads:\n  a: {kind: " + kind + ", " + factor + ": [1, 2, 4]}\nstop: {objective: latency<2ms}\n"
	}
	for _, c := range []struct{ kind, factor, want string }{
		{"web", "rate", ""},
		{"web", "connections", "t.yaml:6:19: connections does not set how many requests are due per second: a slower sandbox gets fewer requests, so a level of it is not a fixed load; vary the offered rate instead: write rate instead of connections, with load: open"},
		{"net, mode: rr", "connections", "t.yaml:6:19: connections does not set how many requests are due per second: a slower sandbox gets fewer requests, so a level of it is not a fixed load; vary the offered rate instead: write rate instead of connections"},
		{"closed", "connections", `t.yaml:6:19: an objective needs an offered rate, and workload "a" of the kind closed has none; tune a workload that has, such as net with mode: rr, http.nginx with load: open, or fio`},
	} {
		cat.Stored = false
		if _, err := Parse("t.yaml", []byte(file(c.kind, c.factor)), cat, nil); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s %s:\n%v\nwant %s", c.kind, c.factor, err, c.want)
		}
		cat.Stored = true
		if _, err := Parse("t.yaml", []byte(file(c.kind, c.factor)), cat, nil); err != nil {
			t.Errorf("%s %s of results: %v", c.kind, c.factor, err)
		}
	}
}
