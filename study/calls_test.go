package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
)

// countCatalogue is watchCatalogue with workloads that count operations, and one
// that makes its own sandboxes.
func countCatalogue() Catalogue {
	cat := watchCatalogue()
	cat.Sandboxes["runsc-ptrace"] = cat.Sandboxes["runsc-systrap"]
	counts := func(operation string) func(param.Values) []record.Response {
		return func(param.Values) []record.Response {
			return []record.Response{{Name: "first", Unit: record.PerSecond, Better: record.Higher, Operation: operation}}
		}
	}
	net := cat.Workloads["net"]
	net.Responses = counts("request")
	cat.Workloads["net"] = net
	for name, rs := range map[string][]record.Response{
		"part": {{Name: "get", Unit: record.PerSecond, Better: record.Higher}},
		"tail": {{Name: "latency_p99", Unit: record.Second, Better: record.Lower}},
		"open": {{Name: "latency_p99", Unit: record.Second, Better: record.Lower}, {Name: "rate", Unit: record.PerSecond, Better: record.Neither}},
	} {
		cat.Workloads[name] = WorkloadInfo{Endpoints: 1, Responses: func(param.Values) []record.Response { return rs }}
	}
	cat.Workloads["startup"] = WorkloadInfo{Endpoints: 1, Launches: true, Responses: counts("run")}
	cat.Workloads["syscall"] = WorkloadInfo{Endpoints: 1, Responses: counts("call"),
		Params: []param.Param{
			{Name: "call", Type: param.Enum, Default: "getpid", Words: []string{"getpid", "stat", "open_close"}},
			{Name: "warmup", Type: param.Duration, Default: "200ms", Max: 60},
			{Name: "duration", Type: param.Duration, Default: "1s", Min: 0.01, Max: 60},
		}}
	return cat
}

// TestUnpriced: a study whose calls would be counted, but for what --set left out, says
// so, and says nothing where nobody left anything out.
func TestUnpriced(t *testing.T) {
	const src = "study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {app: {kind: net}, sys: {kind: syscall}}\n"
	for _, c := range []struct {
		src  string
		sets []string
		want bool
	}{
		{src, nil, false},
		{src, []string{"workload=app"}, true},
		{src, []string{"seed=3", "workload = app"}, true},
		{src, []string{"workload=app,sys"}, false},
		{src, []string{"workload=app", "calls=on"}, false},
		{src, []string{"workload=app", "calls=off"}, false},
		{"study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {app: {kind: net}, up: {kind: startup}}\n", []string{"workload=app"}, false},
	} {
		s, err := Parse("s.yaml", []byte(c.src), countCatalogue(), c.sets)
		if err != nil {
			t.Fatalf("%v: %v", c.sets, err)
		}
		if (s.Unpriced != "") != c.want || c.want && !strings.Contains(s.Unpriced, "choose sys as well") {
			t.Errorf("%v: %q, want a reason: %v", c.sets, s.Unpriced, c.want)
		}
	}
}

// TestCalls: which strata are counted, by which cell, and what is a mistake.
func TestCalls(t *testing.T) {
	file := func(boxes, loads, rest string) string {
		return "study: s\nfactors: {sandbox: " + boxes + "}\nworkloads: {" + loads + "}\n" + rest
	}
	const app, getpid = "app: {kind: net}", "sys: {kind: syscall, call: getpid}"
	for name, c := range map[string]struct {
		src  string
		sets []string
		want []string // cells, in order of strata
		why  string   // of those that have none
	}{
		"by getpid":            {src: file("[process, runsc-ptrace]", app+", "+getpid, ""), want: []string{"workload=app,sandbox=process,counting=calls", "workload=sys,sandbox=process,counting=calls"}},
		"the default call":     {src: file("[process, runsc-ptrace]", "sys: {kind: syscall}", ""), want: []string{"workload=sys,sandbox=process,counting=calls"}},
		"no getpid":            {src: file("[process, runsc-ptrace]", app+", sys: {kind: syscall, call: stat}", "")},
		"one of several":       {src: file("[process, runsc-ptrace]", "sys: {kind: syscall, call: [stat, getpid]}", ""), want: []string{"workload=sys,sandbox=process,call=stat,counting=calls", "workload=sys,sandbox=process,call=getpid,counting=calls"}},
		"asked for":            {src: file("[process, runsc-ptrace]", app, "calls: on\n"), want: []string{"workload=app,sandbox=process,counting=calls"}},
		"not wanted":           {src: file("[process, runsc-ptrace]", app+", "+getpid, "calls: off\n")},
		"not wanted, by --set": {src: file("[process, runsc-ptrace]", app+", "+getpid, ""), sets: []string{"calls=off"}},
		"another baseline":     {src: file("[runsc-ptrace, runc, process]", app, "calls: on\nbaseline: runsc-ptrace\n"), want: []string{"workload=app,sandbox=runc,counting=calls"}},
		"none that is seen":    {src: file("[runsc-ptrace, runsc-systrap]", app, "calls: on\nbaseline: runsc-ptrace\n"), why: "none of its sandboxes is known to use the host's kernel"},
		"a runtime of its own": {src: file("[runsc-ptrace, mine]", app, "calls: on\nbaseline: runsc-ptrace\nsandboxes: {mine: {kind: oci, runtime: /opt/youki}}\n"), want: []string{"workload=app,sandbox=mine,counting=calls"}},
		"one that is unknown":  {src: file("[runsc-ptrace, mine]", app, "calls: on\nbaseline: runsc-ptrace\nsandboxes: {mine: {kind: oci, runtime: /opt/kata}}\n"), why: "as these do: process, runc"},
		"nothing to compare":   {src: file("[process]", app, "calls: on\n")},
		"launches":             {src: file("[process, runc]", "up: {kind: startup}", "calls: on\n"), why: "it creates its own sandboxes"},
		"no operations":        {src: file("[process, runc]", "no: {kind: noop}", "calls: on\n"), why: "elapsed, its first response, is neither a rate"},
		"a part":               {src: file("[process, runc]", "x: {kind: part}", "calls: on\n"), why: "get, its first response, is the rate of a part"},
		"a percentile":         {src: file("[process, runc]", "x: {kind: tail}", "calls: on\n"), why: "latency_p99, its first response, is neither a rate"},
		"a given rate":         {src: file("[process, runc]", "x: {kind: open}", "calls: on\n"), why: "the rate is given by the study"},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := Parse("s.yaml", []byte(c.src), countCatalogue(), c.sets)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range st.Strata {
				if (s.Uncounted == "") != (c.why == "") || !strings.Contains(s.Uncounted, c.why) {
					t.Errorf("%s is not counted because %q, want %q", s.Key, s.Uncounted, c.why)
				}
				if s.Counting != nil {
					got = append(got, s.Counting.Key())
					if !IsCounting(s.Counting) || IsCounting(s.Cells[0]) {
						t.Errorf("IsCounting of %s", s.Counting)
					}
					r, err := st.Resolve(countCatalogue(), s.Counting)
					plain, perr := st.Resolve(countCatalogue(), s.Counting.Without(FactorCounting))
					if d := cmp.Diff(plain, r); d != "" || err != nil || perr != nil {
						t.Errorf("it is another trial: %v %v %s", err, perr, d)
					}
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	for src, want := range map[string]string{
		file("[process, runc]", app, "calls: maybe\n"):                                  "s.yaml:4:8: calls \"maybe\" is not possible; write on or off",
		file("[process, runc]", app, "calls: on\ncompare: cpu-limit\nbaseline: none\n"): "calls are counted to compare sandboxes",
	} {
		if _, err := Parse("s.yaml", []byte(src), countCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
