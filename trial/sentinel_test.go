package trial

import (
	"context"
	"slices"
	"testing"

	"tare/collect"
	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/study"
)

// presser is a collector that knows the machine's pressure stall.
type presser struct {
	meter
	name   string
	labels record.Labels
}

func (p *presser) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) {
	return &pressProbe{p: p}, nil
}

type pressProbe struct {
	p *presser
	v float64
}

func (p *pressProbe) Read(dst []record.Sample) ([]record.Sample, error) {
	p.v += 0.001
	return append(dst, record.Sample{Name: p.p.name, Labels: p.p.labels, Unit: record.Second, Kind: record.Counter, Value: p.v}), nil
}

func (p *pressProbe) Close() error { return nil }

// TestSentinelKeepsTheWait: a trial of the sentinel has the machine's wait without
// labels, equal to what the collector read, the workload's own where there is no
// pressure stall, none without a collector; other trials do not have it.
func TestSentinelKeepsTheWait(t *testing.T) {
	for _, c := range []struct{ name, series, labels string }{
		{"pressure", "system_pressure", "resource=cpu,who=some"},
		{"own wait", "run_wait", "end=server,role=workload"},
		{"neither", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, j := engine(t, "")
			e.Study.Sentinel = &study.Sentinel{
				Cell:     record.Cell{{Factor: "workload", Value: study.SentinelLabel}, {Factor: "sandbox", Value: "process"}},
				Workload: study.Workload{Label: study.SentinelLabel, Kind: "load", Responses: []string{"answer"}}, Every: 1,
			}
			e.Collectors = nil
			if c.series != "" {
				e.Collectors = []collect.Collector{&presser{meter{j}, c.series, record.Labels(c.labels)}}
			}
			trials := all(t, e, nil)
			if len(trials) != 4 {
				t.Fatalf("%d trials, want two blocks and a sentinel before each", len(trials))
			}
			for i := range trials {
				got, has := trials[i].Sample(plan.WaitSample)
				if want := i%2 == 0 && c.series != ""; has != want {
					t.Errorf("trial %d (%s): has a wait %v, want %v", i+1, trials[i].Cell, has, want)
				}
				at := slices.IndexFunc(trials[i].Samples, func(s record.Sample) bool { return s.Name == c.series+"_rate" })
				if has && (at < 0 || got != trials[i].Samples[at].Value || got <= 0) {
					t.Errorf("trial %d: wait %g of %+v", i+1, got, trials[i].Samples)
				}
			}
		})
	}
}

// TestSentinelIsPrepared: what the sentinel needs is asked for, and a host that
// cannot run it says so for its cell, the last.
func TestSentinelIsPrepared(t *testing.T) {
	e, _ := engine(t, "")
	e.Study.Sentinel = &study.Sentinel{
		Cell:     record.Cell{{Factor: "workload", Value: study.SentinelLabel}, {Factor: "sandbox", Value: "elsewhere"}},
		Workload: study.Workload{Label: study.SentinelLabel, Kind: "load", Responses: []string{"answer"}},
	}
	skips, err := e.Skips(t.Context())
	if err != nil || len(skips) != 1 || skips[0].Cell.Key() != e.Study.Sentinel.Cell.Key() {
		t.Errorf("%+v, %v", skips, err)
	}
	e.Study.Sentinel.Workload.Kind = "gone"
	if _, err := e.Needs(); err == nil {
		t.Error("a sentinel that cannot be is prepared")
	}
}
