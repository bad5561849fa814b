package study

import (
	"slices"
	"strings"
	"testing"

	"tare/record"
)

const victimHead = `study: s
compare: beside
factors:
  beside: [nothing, load]
  sandbox: [process, runc]
apply:
  sandbox: {beside: load}
workloads: {cpu: {}}
`

func TestVictim(t *testing.T) {
	src := victimHead + "victim: {kind: net, mode: rr, sandbox: runc, isolate: both, responses: [latency]}\n"
	s, err := Parse("t.yaml", []byte(src), testCatalogue(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Strata) != 1 || len(s.Strata[0].Cells) != 3 || s.Strata[0].Baseline != 0 || s.Strata[0].Better != record.Lower ||
		!slices.Equal(s.Strata[0].Responses, []string{"victim_latency"}) {
		t.Errorf("%+v", s.Strata)
	}
	for i, c := range s.Strata[0].Cells {
		r, err := s.Resolve(testCatalogue(), c)
		if err != nil || r.Alone != (i == 0) || r.Victim == nil || r.Victim.Sandbox != "runc" || r.Victim.Isolate != Both || r.Victim.Params.Str("mode") != "rr" {
			t.Errorf("%s: %+v, %v", c, r, err)
		}
		if i > 0 && !slices.Contains(r.Workload.Responses, "victim_latency") {
			t.Errorf("%s: %q", c, r.Workload.Responses)
		}
	}
	if r, err := s.Resolve(testCatalogue(), CountingCell(s.Strata[0].Cells[1])); err != nil || r.Victim != nil {
		t.Errorf("a counting trial has a victim: %+v, %v", r.Victim, err)
	}
	info := testCatalogue().Workloads["cpu"]
	if all := s.ResponsesOf(info, s.WorkloadOf(0), nil); !slices.ContainsFunc(all, func(r record.Response) bool { return r.Name == "victim_rate" }) {
		t.Errorf("%+v", all)
	}
}

// TestVictimSandbox: the compared sandbox may be the victim's.
func TestVictimSandbox(t *testing.T) {
	src := "study: s\ncompare: victim-sandbox\nfactors: {victim-sandbox: [process, runc]}\nworkloads: {cpu: {}}\nvictim: {kind: net, mode: rr}\n"
	s, err := Parse("t.yaml", []byte(src), testCatalogue(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(testCatalogue(), s.Strata[0].Cells[1])
	if err != nil || r.Sandbox != "process" || r.Victim.Sandbox != "runc" {
		t.Errorf("%+v, %v", r, err)
	}
	if own, of := s.Strata[0].Responses[0], s.Strata[0].Responses; strings.HasPrefix(own, record.VictimPrefix) || !slices.Contains(of, "victim_latency_p50") {
		t.Errorf("%q", of)
	}
	if got := s.Boxes(); !slices.Contains(got, "runc") {
		t.Errorf("%q", got)
	}
}

func TestVictimMistakes(t *testing.T) {
	for _, c := range []struct{ victim, want string }{
		{"", "t.yaml:4:3: beside is about a victim, and this study has none; add victim: {kind: net, mode: rr}, or remove the factor"},
		{"victim: {mode: rr}\n", "t.yaml:9:1: the victim has no kind; write victim: {kind: net, mode: rr}"},
		{"victim: {kind: nte}\n", `t.yaml:9:16: there is no kind of workload "nte"; did you mean "net"?`},
		{"victim: {kind: net, mdoe: rr}\n", `t.yaml:9:21: workload kind net has no parameter "mdoe"; did you mean "mode"?`},
		{"victim: {kind: net, mode: [rr, stream]}\n", "t.yaml:9:27: the victim is the same in each trial, and mode is a list or a mapping; write one value"},
		{"victim: {kind: net, sandbox: [runc]}\n", "t.yaml:9:30: the victim is the same in each trial, and sandbox is a list or a mapping; write factors: {victim-sandbox: [...]}"},
		{"victim: {kind: net, sandbox: rucn}\n", `t.yaml:9:30: "rucn" is not a level of sandbox; did you mean "runc"?`},
		{"victim: {kind: cpu, isolate: both}\n", "t.yaml:9:21: workload kind cpu has one end, so there is nothing to isolate apart; remove it"},
		{"victim: {kind: net, mode: stream, rate: 5}\n", "the victim is not possible: mode stream has no rate; remove rate or write mode: rr"},
		{"victim: {kind: net, mode: rr, responses: [latncy]}\n", `t.yaml:9:43: the victim has no response "latncy"; did you mean "latency"?`},
	} {
		_, err := Parse("t.yaml", []byte(victimHead+c.victim), testCatalogue(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.victim, err, c.want)
		}
		if err != nil && strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: one mistake, several messages: %v", c.victim, err)
		}
	}
}
