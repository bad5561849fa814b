package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/analyse/stat"
	"tare/param"
	"tare/record"
	"tare/store"
	"tare/study"
)

// TestPartly compares what matches, and says what does not.
func TestPartly(t *testing.T) {
	a, _ := planted(3, 2, culprit, 1)
	_, b := planted(4, 3, culprit, 1)
	b.Trials = slices.DeleteFunc(slices.Clone(b.Trials), func(x record.Trial) bool { return x.Cell.Key() == "workload=w2,sandbox=box1" && x.Block > 2 })
	for i := range b.Trials {
		x := &b.Trials[i]
		switch x.Cell.Key() {
		case "workload=w3,sandbox=box1":
			x.Status, x.Failure, x.Samples = record.Failed, &record.Failure{Phase: "run", Kind: "died", Reason: "it died"}, nil
		case "workload=w3,sandbox=box2":
			x.Samples[0].Value = 0
		}
	}
	b.Skips = []record.Skip{{Cell: record.Cell{{Factor: "workload", Value: "w1"}, {Factor: "sandbox", Value: "box2"}}, Reason: "no KVM"}}
	b.Trials = slices.DeleteFunc(b.Trials, func(x record.Trial) bool { return x.Cell.Key() == "workload=w1,sandbox=box2" })
	res := mustCompare(t, a, b, Options{Question: Cost})
	got := map[string]string{}
	for i := range res.Rows {
		r := &res.Rows[i]
		why := r.Missing()
		if why == "" && !r.Change().HasInterval() {
			why = r.Change().Why
		}
		got[r.Cell.Key()] = why
	}
	want := map[string]string{
		"workload=w1,sandbox=box1": "", "workload=w1,sandbox=box2": "B: skipped: no KVM", "workload=w1,sandbox=box3": "only in B",
		"workload=w2,sandbox=box1": "need n >= 3 on both sides, have 8 and 2", "workload=w2,sandbox=box2": "", "workload=w2,sandbox=box3": "only in B",
		"workload=w3,sandbox=box1": "B: no block has a value of both", "workload=w3,sandbox=box2": "B: the value is zero", "workload=w3,sandbox=box3": "only in B",
		"workload=w4,sandbox=box1": "only in B", "workload=w4,sandbox=box2": "only in B", "workload=w4,sandbox=box3": "only in B",
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for cell, why := range want {
		if g, ok := got[cell]; !ok || why == "" && g != "" || !strings.HasPrefix(g, why) {
			t.Errorf("%s: %q, want %q", cell, g, why)
		}
	}
	if d := cmp.Diff([]string{"workload=w3,sandbox=box1"}, mustGate(t, res, a, b, `missing and only_in == "" and failed_b >= 3`)); d != "" {
		t.Error(d)
	}
	if n := len(mustGate(t, res, a, b, "missing")); n != 9 {
		t.Errorf("%d rows are missing, want 9", n)
	}
	if got := mustGate(t, res, a, b, "missing and (ratio > 0 or ratio <= 0 or p < 2)"); len(got) > 0 {
		t.Errorf("what is missing has figures: %v", got)
	}
	// By its values a cell with too few blocks on one side has too few as well.
	res = mustCompare(t, a, b, Options{Question: Level, Only: map[string][]string{"workload": {"w2", "w3"}, "sandbox": {"process", "box1"}}})
	var cells []string
	for i := range res.Rows {
		cells = append(cells, res.Rows[i].Cell.Key())
	}
	if d := cmp.Diff([]string{"workload=w2,sandbox=process", "workload=w2,sandbox=box1", "workload=w3,sandbox=process", "workload=w3,sandbox=box1"}, cells); d != "" {
		t.Errorf("--only: %s", d)
	}
}

func TestRefusals(t *testing.T) {
	change := func(f func(*study.Study)) func(*Folder, *Options) {
		return func(s *Folder, _ *Options) { f(s.Study) }
	}
	for want, f := range map[string]func(*Folder, *Options){
		"w2: size is not set in A and 64KiB in B": change(func(st *study.Study) { st.Workloads[1].Params = param.Values{"size": "64KiB"} }),
		"w1 is the workload fake in A and other":  change(func(st *study.Study) { st.Workloads[0].Kind = "other" }),
		"compares sandbox with box1":              change(func(st *study.Study) { st.Baseline = "box1" }),
		"no cell and response is in both": change(func(st *study.Study) {
			for i := range st.Workloads {
				st.Workloads[i].Responses = []string{"speed"}
			}
		}),
		`study has a response "tme"; did you mean "time"`:                 func(_ *Folder, o *Options) { o.Responses = []string{"tme"} },
		`study has a factor "sandbx"; did you mean "sandbox"? There are `: func(_ *Folder, o *Options) { o.Only = map[string][]string{"sandbx": {"box1"}} },
		`neither study has sandbox=bux1; did you`:                         func(_ *Folder, o *Options) { o.Only = map[string][]string{"sandbox": {"bux1"}} },
		"nothing is left to compare":                                      func(_ *Folder, o *Options) { o.Only, o.Question = map[string][]string{"sandbox": {"process"}}, Cost },
		"is in s in A and in 1/s in B": func(s *Folder, o *Options) {
			o.Describe = func(study.Workload) []record.Response { return nil }
			for i := range s.Trials {
				s.Trials[i].Samples = []record.Sample{{Name: "time", Unit: record.PerSecond, Value: 1}}
			}
		},
	} {
		a, b := planted(2, 1, culprit, 1)
		opt := Options{Describe: describe}
		f(&b, &opt)
		_, err := Compare([]Folder{a}, []Folder{b}, opt)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
		if _, ok := err.(*Refusal); !ok { //nolint:errorlint // the type is the promise
			t.Errorf("%T, want a refusal", err)
		}
	}
	// What is left out may differ, and levels need no common baseline.
	a, b := planted(2, 1, culprit, 1)
	b.Study.Workloads[1].Params = param.Values{"size": "64KiB"}
	b.Study.Baseline = "box1"
	for i := range b.Study.Strata {
		b.Study.Strata[i].Baseline = 1
	}
	res := mustCompare(t, a, b, Options{Question: Level, Only: map[string][]string{"workload": {"w1"}}})
	if res.Counts.Rows != 2 || res.Counts.Missing != 0 || res.Rows[1].Cost != nil {
		t.Errorf("levels of w1: %+v", res.Counts)
	}
	// The order of factors in the study makes no other cells.
	a, b = planted(2, 1, culprit, 1)
	for i := range b.Study.Strata {
		for _, c := range b.Study.Strata[i].Cells {
			slices.Reverse(c)
		}
	}
	for i := range b.Trials {
		b.Trials[i].Cell = slices.Clone(b.Trials[i].Cell)
		if b.Trials[i].Cell[0].Factor == "workload" {
			slices.Reverse(b.Trials[i].Cell)
		}
	}
	if res := mustCompare(t, a, b, Options{}); res.Counts.Missing != 0 || res.Counts.Rows != 4 {
		t.Errorf("factors in another order: %+v", res.Counts)
	}
}

// TestLevelsNeedNoCommonBaseline: where only levels are asked, by a study without
// treatments or by what is chosen, the baselines may be others; where a cost is
// asked they may not.
func TestLevelsNeedNoCommonBaseline(t *testing.T) {
	rebased := func(treats int) (a, b Folder) {
		a, b = planted(2, treats, culprit, 1)
		b.Study.Baseline = "other"
		return a, b
	}
	a, b := rebased(0)
	if res := mustCompare(t, a, b, Options{}); res.Question != Level || res.Counts.Rows != 2 || res.Counts.Missing != 0 {
		t.Errorf("without treatments: %s, %+v", res.Question, res.Counts)
	}
	a, b = rebased(1)
	baselines := map[string][]string{"sandbox": {"process"}}
	if res := mustCompare(t, a, b, Options{Only: baselines}); res.Question != Level || res.Counts.Rows != 2 || res.Counts.Missing != 0 {
		t.Errorf("the baselines alone: %s, %+v", res.Question, res.Counts)
	}
	if _, err := Compare([]Folder{a}, []Folder{b}, Options{Describe: describe}); err == nil || !strings.Contains(err.Error(), "the costs are not of the same") {
		t.Errorf("with treatments: %v", err)
	}
}

// TestUnitsOfWhatIsShown: rows that the question leaves out refuse nothing.
func TestUnitsOfWhatIsShown(t *testing.T) {
	a, b := planted(2, 1, culprit, 1)
	for i := range b.Trials {
		if l, _ := b.Trials[i].Cell.Get("sandbox"); l == "process" {
			b.Trials[i].Samples = slices.Clone(b.Trials[i].Samples)
			b.Trials[i].Samples[0].Unit = record.PerSecond
		}
	}
	opt := Options{Question: Cost, Describe: func(study.Workload) []record.Response { return nil }}
	if res := mustCompare(t, a, b, opt); res.Counts.Rows != 2 {
		t.Errorf("%+v", res.Counts)
	}
	for _, q := range []Question{Auto, Level} {
		opt.Question = q
		if _, err := Compare([]Folder{a}, []Folder{b}, opt); err == nil || !strings.Contains(err.Error(), "they cannot be compared") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// TestMargin: the same change is equivalent within a wider margin.
func TestMargin(t *testing.T) {
	a, b := planted(6, 4, culprit, 1.1)
	wide := 0.25
	for i, r := range mustCompare(t, a, b, Options{Margin: &wide}).Rows {
		if r.Change().Verdict != stat.Equivalent || r.Change().Changed {
			t.Errorf("row %d: %+v", i, r.Change())
		}
	}
	b.Study.Stop.Margin = 0.01
	res := mustCompare(t, a, b, Options{})
	if res.Margin != 0.01 || !strings.Contains(fmt.Sprint(res.Warnings), "different margins") {
		t.Errorf("margin %g, %v", res.Margin, res.Warnings)
	}
}

func TestDifferences(t *testing.T) {
	a, b := planted(1, 1, culprit, 1)
	host := record.Host{Hostname: "h", Kernel: "6.1.0", CPUModel: "X", Cores: 4, MemoryBytes: 8 << 30, Governor: "performance",
		Mitigations: map[string]string{"spectre_v2": "on", "meltdown": "off"}, Tools: map[string]string{"runc": "1.1.5", "fio": "3.33"},
		Warnings: []record.Warning{{Code: "load", Text: "load 1.2"}}}
	other := host
	other.Kernel, other.Governor = "6.2.0", ""
	other.Mitigations = map[string]string{"spectre_v2": "off", "meltdown": "off"}
	other.Tools = map[string]string{"runc": "1.2.0", "fio": "3.33", "crun": "1.8"}
	other.Warnings = []record.Warning{{Code: "load", Text: "load 1.3"}, {Code: "swap", Text: "it swaps"}}
	a.Sessions = []store.Session{{TareVersion: "1", Host: host}}
	b.Sessions = []store.Session{{TareVersion: "1", Host: host}, {TareVersion: "2", Host: other}, {TareVersion: "2", Host: other}}
	b.Study.Stop.Fixed = 9 // the pod of A, in few trials, looks like a fact that is always the same
	for i := range a.Trials {
		a.Trials[i].Facts = map[string]string{"version": "1.1.5", "main.pod": "f00d", "pid": fmt.Sprint(i), "collector.proc": "files of /proc: load: map pids: not permitted", "collector.host": "files", "main.runtime": "/usr/sbin/runc"}
	}
	for i := range b.Trials {
		b.Trials[i].Facts = map[string]string{"version": "1.2.0", "pid": fmt.Sprint(100 + i), "collector.proc": "files of /proc: load: map seen: not permitted", "collector.host": "registers",
			"main.runtime": []string{"/usr/sbin/runc", "runc"}[i%2], "main.family": "container", "main.flags": "--x"}
	}
	want := []Difference{
		{"tare", "1", "1, then 2"}, {"kernel", "6.1.0", "6.1.0, then 6.2.0"}, {"governor", "performance", "performance, then -"},
		{"mitigation spectre_v2", "on", "on, then off"}, {"tool runc", "1.1.5", "1.1.5, then 1.2.0"},
		{"sandbox=box1: version", "1.1.5", "1.2.0"}, {"sandbox=process: version", "1.1.5", "1.2.0"},
		{"sandbox=box1: collector.host", "files", "registers"}, {"sandbox=process: collector.host", "files", "registers"},
		{"study: stop", "fixed: 8", "fixed: 9"}, {"tool crun", "-", "1.8"}, {"warning swap", "-", "it swaps"},
	}
	if d := cmp.Diff(want, Differences([]Folder{a}, []Folder{b}), cmpopts.SortSlices(func(x, y Difference) bool { return x.Field < y.Field })); d != "" {
		t.Error(d)
	}
	plain := b
	plain.Trials = slices.Clone(b.Trials)
	for i := range plain.Trials {
		plain.Trials[i].Facts = maps.Clone(plain.Trials[i].Facts)
		delete(plain.Trials[i].Facts, "main.flags")
	}
	if d := Differences([]Folder{plain}, []Folder{b}); len(d) != 2 || d[0].Field != "sandbox=box1: main.flags" || d[0].A != "-" || d[0].B != "--x" {
		t.Errorf("flags are given on one side: %v", d)
	}
	if d := Differences([]Folder{b}, []Folder{b}); len(d) > 0 {
		t.Errorf("differs from itself: %v", d)
	}
}
