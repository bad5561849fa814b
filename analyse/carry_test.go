package analyse

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/plan"
	"tare/record"
)

func TestReasonsApartFromNames(t *testing.T) {
	failed := func(text string) record.Trial {
		return record.Trial{Status: record.Failed, Failure: &record.Failure{Phase: "run", Kind: "died", Reason: text}}
	}
	trials := []record.Trial{
		failed("runc t5k-3-main: the container ended"),
		failed("runc t5k-4-main: no room"),
		failed("runc t9z1-12-main: the container ended"),
		failed("exit code 3"), failed("exit code 4"), // these differ
	}
	var all []*record.Trial
	for i := range trials {
		all = append(all, &trials[i])
	}
	n, got := reasons(all)
	want := []Reason{
		{Phase: "run", Kind: "died", Text: "runc t5k-4-main: no room", Count: 1},
		{Phase: "run", Kind: "died", Text: "runc t9z1-12-main: the container ended", Count: 2},
		{Phase: "run", Kind: "died", Text: "exit code 3", Count: 1},
		{Phase: "run", Kind: "died", Text: "exit code 4", Count: 1},
	}
	if d := cmp.Diff(want, got); d != "" || n != 5 {
		t.Errorf("%d failed (-want +got)\n%s", n, d)
	}
}

// TestIdle: what a sandbox used between its turns is that of its own endpoints.
func TestIdle(t *testing.T) {
	st := makeStudy()
	r := Analyse(st, play(st, nil, func(n plan.Next) record.Trial {
		x := outcome(n)
		for end, v := range map[string]float64{"server": 0.04, "client": 0.5} { // the client is in another sandbox
			x.Samples = append(x.Samples, record.Sample{Name: record.IdleCPU, Labels: record.MakeLabels(record.LabelEndpoint, end), Unit: record.Cores, Value: v})
		}
		return x
	}), nil, Describe(describe))
	for _, o := range r.Overheads {
		if o.Idle == nil || *o.Idle != 0.04 || !o.Idles() {
			t.Errorf("%s: idle %v, want 0.04 cores", o.Sandbox, o.Idle)
		}
	}
}
