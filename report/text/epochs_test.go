package text

import (
	"bytes"
	"strings"
	"testing"

	"tare/analyse"
	"tare/plan"
	"tare/record"
	"tare/report/section"
)

func epochsResult(epochs ...analyse.Epoch) *analyse.Result {
	r := testResult()
	r.Sentinel = &analyse.Sentinel{Kind: "syscall", Response: record.Response{Name: "time_per_call"}, Share: 0.0291, Scatter: 0.0123,
		Points: make([]analyse.SentinelPoint, 24)}
	r.Epochs = epochs
	return r
}

func TestEpochsGolden(t *testing.T) {
	again := analyse.EpochBlock{Stratum: "workload=net", Block: 3, Again: true}
	left := analyse.EpochBlock{Stratum: "workload=net", Block: 4}
	var b strings.Builder
	for _, r := range []*analyse.Result{
		epochsResult(),
		epochsResult(analyse.Epoch{Seq: 1, Level: 1},
			analyse.Epoch{Seq: 97, After: 84, What: []string{plan.ChangedTime}, Ratio: 0.91, Blocks: []analyse.EpochBlock{again, again, again}},
			analyse.Epoch{Seq: 130, After: 121, What: []string{plan.ChangedTime, plan.ChangedWait}, Ratio: 1.2, Wait: 0.41, Blocks: []analyse.EpochBlock{again, left}},
			analyse.Epoch{Seq: 150, After: 149, What: []string{plan.ChangedWait}, Ratio: 1.01},
			analyse.Epoch{Seq: 180, After: 170, What: []string{plan.ChangedWait}, Ratio: 1.01, Blocks: []analyse.EpochBlock{left}}),
	} {
		write(&b, section.Epochs(r), Options{Width: 100})
	}
	few := epochsResult()
	few.Sentinel.Points, few.Sentinel.Failed = few.Sentinel.Points[:3], 2
	write(&b, section.Epochs(few), Options{Width: 100})
	golden(t, "epochs", []byte(b.String()))
	fits(t, b.String(), 100)
}

// TestNodesAreInTheReport: with several nodes, what each had and whose the epochs are.
func TestNodesAreInTheReport(t *testing.T) {
	r := epochsResult(analyse.Epoch{Node: "b", Seq: 1, Level: 1}, analyse.Epoch{Node: "b", Seq: 97, After: 84, What: []string{plan.ChangedTime}, Ratio: 0.91},
		analyse.Epoch{Node: "c", Seq: 2, Level: 1}, analyse.Epoch{Node: "c", Seq: 99, After: 80, What: []string{plan.ChangedTime}, Ratio: 1.2})
	r.Nodes = []analyse.Node{{Name: "b", Trials: 12}, {Name: "c", Trials: 1}, {Trials: 3}}
	var b bytes.Buffer
	if err := Write(&b, r, nil, Options{Width: 200}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nodes b (12 trials), c (1 trial), one without a name (3 trials)\n", " saw 2 epochs on node b, 2 epochs on node c\n",
		"node b changed after trial 84 and before 97 (sentinel x 0.91)", "node c changed after trial 80 and before 99"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), " changed after"); n != 2 {
		t.Errorf("%d changes are told", n)
	}
}

// TestEpochsAreInTheReport: the section is there with a sentinel, and not without.
func TestEpochsAreInTheReport(t *testing.T) {
	for _, r := range []*analyse.Result{epochsResult(), testResult()} {
		var b bytes.Buffer
		if err := Write(&b, r, nil, Options{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "the machine meanwhile"); got != (r.Sentinel != nil) {
			t.Errorf("with a sentinel %v, the section %v", r.Sentinel != nil, got)
		}
		fits(t, b.String(), 80)
	}
}

func TestBusyMachineIsSaid(t *testing.T) {
	r := epochsResult()
	for i := range r.Sentinel.Points {
		r.Sentinel.Points[i].Wait = 0.6
	}
	r.Sentinel.Wait = 0.6
	r.Warnings = append(r.Warnings, analyse.Warning{Code: analyse.WarnBusy, Text: r.Sentinel.Busy()})
	var b bytes.Buffer
	if err := Write(&b, r, nil, Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "  warning: threads waited 60 % of the time for a processor: the machine was busy throughout\n") != 1 || strings.Count(got, "busy") != 1 {
		t.Errorf("it is to be said once, beside the sentinel:\n%s", got)
	}
}
