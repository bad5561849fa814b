package study

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
)

// watchCatalogue is testCatalogue with what the usual sentinel needs, and a fake.
func watchCatalogue() Catalogue {
	cat := testCatalogue()
	cat.Sandboxes["fake"] = is(record.Traits{Family: record.FamilyFake})
	cat.Workloads["syscall"] = WorkloadInfo{Endpoints: 1,
		Params: []param.Param{
			{Name: "call", Type: param.Enum, Default: "getpid", Words: []string{"getpid", "open_close"}},
			{Name: "warmup", Type: param.Duration, Default: "200ms", Max: 60},
			{Name: "duration", Type: param.Duration, Default: "1s", Min: 0.01, Max: 60},
		},
		Check: func(v param.Values) error {
			if v.Duration("warmup") > v.Duration("duration") {
				return errors.New("warmup is longer than duration; write a shorter one")
			}
			return nil
		},
		Responses: func(param.Values) []record.Response {
			return []record.Response{{Name: "time_per_call", Unit: record.Second, Better: record.Lower}, {Name: "rate"}}
		}}
	return cat
}

func TestSentinel(t *testing.T) {
	usual := &Sentinel{Share: sentinelShare, Workload: Workload{Label: "sentinel", Kind: "syscall", Params: sentinelParams(), Responses: []string{"time_per_call"}},
		Cell: record.Cell{{Factor: "workload", Value: "sentinel"}, {Factor: "sandbox", Value: "process"}}}
	with := func(f func(*Sentinel)) *Sentinel {
		s := *usual
		s.Workload.Params = sentinelParams()
		f(&s)
		return &s
	}
	fake := strings.Replace(head, "[process, runc, vm]", "[fake]", 1) + "baseline: fake\n"
	taken := strings.Replace(head, "cpu: {}", "sentinel: {kind: cpu}", 1)
	for _, c := range []struct {
		name, src string
		sets      []string
		want      *Sentinel
	}{
		{"by default", head, nil, usual},
		{"on", head + "sentinel: on\n", nil, usual},
		{"off", head + "sentinel: off\n", nil, nil},
		{"all fake", fake, nil, nil},
		{"all fake, on", fake + "sentinel: on\n", nil, usual},
		{"its name is taken", taken, nil, nil},
		{"set off", head, []string{"sentinel=off"}, nil},
		{"set fake", head, []string{"sandbox=fake", "baseline=fake"}, nil},
		{"every", head + "sentinel: {every: 5}\n", nil, with(func(s *Sentinel) { s.Every = 5 })},
		{"share and a parameter", head + "sentinel: {share: 1%, duration: 1s}\n", nil,
			with(func(s *Sentinel) { s.Share = 0.01; s.Workload.Params["duration"] = "1s" })},
		{"another kind", head + "sentinel: {kind: net, mode: rr}\n", nil,
			with(func(s *Sentinel) {
				s.Workload.Kind, s.Workload.Params, s.Workload.Responses = "net", param.Values{"mode": "rr"}, []string{"latency_p50"}
			})},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, err := Parse("t.yaml", []byte(c.src), watchCatalogue(), c.sets)
			if err != nil {
				t.Fatal(err)
			}
			if st.Sentinel != nil {
				st.Sentinel.Workload.Line = 0
			}
			if d := cmp.Diff(c.want, st.Sentinel); d != "" {
				t.Error(d)
			}
			if st.Sentinel == nil {
				return
			}
			for _, s := range st.Strata {
				for _, cell := range s.Cells {
					if cell.Key() == st.Sentinel.Cell.Key() {
						t.Error("the sentinel is a cell of a stratum")
					}
				}
			}
			r, err := st.Resolve(watchCatalogue(), st.Sentinel.Cell)
			if err != nil || r.Workload.Kind != c.want.Workload.Kind || r.Sandbox != "process" || r.CPULimit != 0 || r.MemoryLimit != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if len(c.sets) == 0 {
				if err := compiled(t, watchCatalogue()).Validate(instance(t, []byte(c.src))); err != nil {
					t.Errorf("the schema refuses it: %v", err)
				}
			}
		})
	}
	// A tare without the usual kind has no sentinel, and says so when it is asked for.
	if st := mustParse(t, head); st.Sentinel != nil {
		t.Errorf("%+v", st.Sentinel)
	}
}

func TestSentinelErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"word", "yes\n", `t.yaml:4:11: sentinel "yes" is not possible; write on, off, or {kind: KIND, every: BLOCKS}`},
		{"nothing", "\n", `t.yaml:4:1: sentinel has no value; write on, off, or {kind: KIND, every: BLOCKS}`},
		{"list", "[a]\n", "t.yaml:4:11: sentinel is not a mapping; write `key: value` pairs"},
		{"kind", "{kind: syscal}\n", `t.yaml:4:18: there is no kind of workload "syscal"; did you mean "syscall"?`},
		{"parameter", "{cal: getpid}\n", `t.yaml:4:12: workload kind syscall has no parameter "cal"; did you mean "call"?`},
		{"level", "{call: getpidd}\n", `t.yaml:4:18: "getpidd" is not a level of call; did you mean "getpid"?`},
		{"factor", "{call: [getpid, open_close]}\n", `t.yaml:4:18: the sentinel is always the same, and call is a list; write one value`},
		{"every", "{every: 0}\n", `t.yaml:4:19: every "0" is not possible; write a whole number from 1 to 100000`},
		{"share", "{share: 60%}\n", `t.yaml:4:19: share "60%" is not possible; write a value between 0% and 50%`},
		{"both", "{every: 3, share: 1%}\n", `t.yaml:4:22: share has no effect together with every (line 4); remove share or every`},
		{"refused", "{warmup: 1m}\n", `t.yaml:4:1: the sentinel is not possible: warmup is longer than duration; write a shorter one`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(head+"sentinel: "+c.text), watchCatalogue(), nil)
			if err == nil {
				t.Fatal("accepted")
			}
			if d := cmp.Diff(c.want, err.Error()); d != "" {
				t.Error(d)
			}
		})
	}
	taken := strings.Replace(head, "cpu: {}", "sentinel: {kind: cpu}", 1) + "sentinel: on\n"
	_, err := Parse("t.yaml", []byte(taken), watchCatalogue(), nil)
	if err == nil || !strings.Contains(err.Error(), `t.yaml:3:34: "sentinel" is the name of the sentinel; give the workload another name`) {
		t.Errorf("%v", err)
	}
	_, err = Parse("t.yaml", []byte(head+"sentinel: on\n"), testCatalogue(), nil)
	if err == nil || !strings.Contains(err.Error(), "t.yaml:4:1: the sentinel is not possible: this version of tare has no workload syscall") {
		t.Errorf("%v", err)
	}
	s := compiled(t, watchCatalogue())
	for _, text := range []string{"yes", "[a]", "{kind: syscal}", "{cal: getpid}", "{every: 0}", "{kind: net, call: getpid}"} {
		if s.Validate(instance(t, []byte(head+"sentinel: "+text+"\n"))) == nil {
			t.Errorf("the schema takes %q", text)
		}
	}
}
