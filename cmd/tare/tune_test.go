package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"tare/record"
	"tare/store"
)

// TestTuneAgain: what goes on with a search is the command that began it.
func TestTuneAgain(t *testing.T) {
	for typed, c := range map[string]struct{ own, flag, want string }{
		"tune|s.yaml|--factor|io_threads=1,2|--budget|5m|--objective|latency_p99<2ms": {"", "", "tare tune s.yaml --factor io_threads=1,2 --budget 5m --objective 'latency_p99<2ms'"},
		"tune|s.yaml|--fresh|--factor|n":                                              {"", "", "tare tune s.yaml --factor n --results 'r 2'"},
		"tune|s.yaml|-or|--fresh|--factor|n":                                          {"", "", "tare tune s.yaml --factor n --results 'r 2'"},
		"tune|s.yaml|-o|r|--factor|n":                                                 {"", "", "tare tune s.yaml -o r --factor n"},
		"tune|s.yaml|--results=r|--fresh|--factor=n|--on|model":                       {"--on model", "--on model", "tare tune s.yaml --factor=n --on model --results 'r 2'"},
		"tune|s.yaml|--on|model|--factor|n":                                           {"--on model", "", "tare tune s.yaml --factor n"},
		"tune|s.yaml|--factor|n":                                                      {"", "--on model", "tare tune s.yaml --factor n --on model"},
	} {
		if got := tuneAgain(strings.Split(typed, "|"), "r 2", c.own, c.flag); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", typed, got, c.want)
		}
	}
}

// TestTune: on the model, the level that more vCPUs than clients do not improve is found in fewer
// trials than whole blocks take, and the same command has nothing more to do.
func TestTune(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	err := os.WriteFile(file, []byte(`study: s
factors:
  sandbox: [vm]
  default_vcpus: [1, 2, 3, 4, 5, 6, 7, 8]
workloads:
  bandwidth: {kind: net, mode: stream, size: 4KiB, connections: 4, warmup: 100ms, duration: 300ms, responses: [throughput]}
baseline: vm
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"tune", file, "--factor", "default_vcpus", "--on", "model", "--results", filepath.Join(dir, "r"), "--json"}
	var got struct {
		Modelled bool `json:"modelled"`
		Tuned    []struct {
			Answer, Best, Stage string
			Trials, Whole       int
			Sure                float64
			Patches             []struct{ For, Text string }
		} `json:"tuned"`
	}
	run := func() (code int, out, errs string) {
		var o, e bytes.Buffer
		code = execute(t.Context(), &o, &e, args)
		return code, o.String(), e.String()
	}
	code, out, errs := run()
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v, %s, %s", code, err, out, errs)
	}
	if !got.Modelled || len(got.Tuned) != 1 {
		t.Fatalf("%+v", got)
	}
	x := got.Tuned[0]
	if x.Stage != "found" || x.Answer < "2" || x.Answer > "5" || x.Sure < 0.95 || x.Trials >= x.Whole {
		t.Errorf("%+v", x)
	}
	if len(x.Patches) == 0 || x.Patches[0].For != "pod" {
		t.Errorf("no patch: %+v", x)
	}
	if _, again, _ := run(); again != out {
		t.Errorf("again: %s, before: %s", again, out)
	}
	args = append(args, "--reach", "80%")
	if code, _, errs := run(); code != exitUsage || !strings.Contains(errs, "`tare tune "+file+" --factor default_vcpus --on model --results "+filepath.Join(dir, "r")+" --json --reach 80% --fresh` starts a new folder") {
		t.Errorf("of another version: exit %d, %s", code, errs)
	}
}

// TestBudgetBesideSet: --budget and --set hold together in any order.
func TestBudgetBesideSet(t *testing.T) {
	for _, args := range [][]string{{"--budget", "1m", "--set", "a=1", "--set", "b=2"}, {"--set", "a=1", "--budget", "1m", "--set", "b=2"}} {
		var sets []string
		fl := pflag.NewFlagSet("", pflag.ContinueOnError)
		fl.StringArrayVar(&sets, "set", nil, "")
		budgetFlag(fl)
		if err := fl.Parse(args); err != nil || len(sets) != 3 || !slices.Contains(sets, "budget.time=1m0s") {
			t.Errorf("%q: %q, %v", args, sets, err)
		}
	}
}

// TestTuneBudget: a search that its budget ended goes on with a larger one, in the same folder and with all its trials. A smaller one,
// and another study, are refused.
func TestTuneBudget(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	const text = `study: s
factors:
  sandbox: [vm]
  default_vcpus: [1, 2, 3, 4, 5, 6, 7, 8]
workloads:
  bandwidth: {kind: net, mode: stream, size: [1KiB, 4KiB], connections: 4, warmup: 100ms, duration: 300ms, responses: [throughput]}
baseline: vm
`
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	results := filepath.Join(dir, "r")
	type made struct {
		Trials  int
		Stage   string
		Ended   string
		Thin    bool `json:"too_few_blocks"`
		Patches []struct{ Text string }
	}
	unclear := func(x made) bool {
		return len(x.Patches) > 0 && strings.HasPrefix(x.Patches[0].Text, "# take care: the answer is not clear")
	}
	run := func(more ...string) (out []made, errs string, code int) {
		t.Helper()
		var o, e bytes.Buffer
		code = execute(t.Context(), &o, &e, append([]string{"tune", file, "--factor", "default_vcpus", "--on", "model", "--results", results, "--json"}, more...))
		var got struct{ Tuned []made }
		if code == exitOK {
			if err := json.Unmarshal(o.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
		}
		return got.Tuned, e.String(), code
	}
	stored := func() (keys []string, overrides []string) {
		t.Helper()
		db, err := store.OpenReadOnly(results)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		trials, err := db.Trials()
		if err != nil {
			t.Fatal(err)
		}
		for i := range trials {
			keys = append(keys, store.TrialName(&trials[i]))
		}
		meta, err := db.Meta()
		if err != nil {
			t.Fatal(err)
		}
		return keys, meta.Overrides
	}
	first, errs, code := run("--budget", "30s")
	if code != exitOK || len(first) != 2 || first[0].Stage == "found" || !strings.Contains(first[0].Ended, "with a larger budget to continue") {
		t.Fatalf("exit %d, %+v, %s", code, first, errs)
	}
	few, _ := stored()
	for _, c := range []struct {
		args, want string
	}{
		{"--budget 20s", "holds this search with a larger budget (At most 30 s of measuring)"},
		{"--budget 10m --reach best", "another version of this study"},
		{"--budget 10m --set seed=5", "another version of this study"},
	} {
		if _, errs, code := run(strings.Fields(c.args)...); code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, code, errs)
		}
	}
	middle, errs, code := run("--budget", "210s")
	if code != exitOK || !slices.ContainsFunc(middle, unclear) {
		t.Errorf("the best so far has no patches: exit %d, %+v, %s", code, middle, errs)
	}
	for _, x := range slices.Concat(first, middle) {
		if x.Thin && len(x.Patches) > 0 {
			t.Errorf("patches after too few blocks: %+v", x)
		}
	}
	then, errs, code := run("--budget", "1h")
	all, overrides := stored()
	if code != exitOK || len(then) != 2 || then[0].Stage != "found" || then[0].Trials <= first[0].Trials {
		t.Fatalf("exit %d, %+v, %s", code, then, errs)
	}
	if len(then[0].Patches) == 0 || unclear(then[0]) {
		t.Errorf("found: %+v", then[0])
	}
	if len(all) <= len(few) || !slices.Equal(all[:len(few)], few) || !strings.Contains(errs, " trials done") {
		t.Errorf("%d trials, then %d: %s", len(few), len(all), errs)
	}
	if !slices.Contains(overrides, "budget.time=1h0m0s") || slices.Contains(overrides, "budget.time=30s") {
		t.Errorf("the folder has %v", overrides)
	}
	for _, c := range [][2]string{{"30m", "holds this search with a larger budget (At most 1 h of measuring)"}, {"2h", "is finished"}} { // of the file
		write(text + "budget: {time: " + c[0] + "}\n")
		if _, errs, _ := run(); !strings.Contains(errs, c[1]) {
			t.Errorf("a file with %s: %s", c[0], errs)
		}
	}
	write(text)
	if again, errs, code := run(); code != exitOK || !reflect.DeepEqual(again, then) || !strings.Contains(errs, "is finished") {
		t.Errorf("without a budget: exit %d, %+v, %s", code, again, errs)
	}
	// A study that compares goes on too, and its report says that the budget was another.
	own := []string{"run", file, "--on", "model", "--results", filepath.Join(dir, "own"), "--set", "default_vcpus=1,2", "--set", "compare=default_vcpus", "--set", "baseline=1", "--set"}
	var o, e bytes.Buffer
	if code := execute(t.Context(), &o, &e, append(slices.Clone(own), "budget.time=20s")); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, o.String(), e.String())
	}
	if code := execute(t.Context(), &o, &e, append(slices.Clone(own), "budget.time=1m")); code != exitOK || !strings.Contains(e.String(), " trials done") || !strings.Contains(strings.Join(strings.Fields(o.String()), " "), "it was at most 20 s of measuring until 4 trials") {
		t.Errorf("exit %d: %s%s", code, o.String(), e.String())
	}
	if code := execute(t.Context(), &o, &e, append(own, "budget.time=1h", "--set", "seed=5")); code != exitUsage || !strings.Contains(e.String(), "another version of this study") {
		t.Errorf("another seed: exit %d: %s", code, e.String())
	}
}

// TestTuneSeveral: on the model, two factors that limit each other are set together, with a patch for each that has one;
// the same from the study file; the report shows both.
func TestTuneSeveral(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	const text = `study: s
factors:
  sandbox: [vm]
  default_vcpus: [1, 2, 3, 4, 5, 6, 7, 8]
  cpu-limit: [1, 2, 3, 4, 5, 6]
workloads:
  bandwidth: {kind: net, mode: stream, size: 4KiB, connections: 4, warmup: 100ms, duration: 300ms, responses: [throughput]}
baseline: vm
sentinel: off
calls: off
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		if code := execute(t.Context(), &o, &e, append(args, "--results", filepath.Join(dir, "r"))); code != exitOK {
			t.Fatalf("%v: exit %d: %s%s", args, code, o.String(), e.String())
		}
		return o.String(), e.String()
	}
	out, errs := run("tune", file, "--factor", "default_vcpus", "--factor", "cpu-limit", "--on", "model", "--json")
	var got struct {
		Tuned []struct {
			Answer, Stage string
			Factors       []string
			Set           record.Cell
			Trials, Whole int
			Sure          float64
			Patches       []struct{ For string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Tuned) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	x := got.Tuned[0]
	vcpus, _ := x.Set.Get("default_vcpus")
	cores, _ := x.Set.Get("cpu-limit")
	if x.Stage != "found" || x.Sure < 0.95 || len(x.Factors) != 2 || vcpus == "" || cores == "" || 4*x.Trials > x.Whole || len(x.Patches) == 0 {
		t.Errorf("%+v", x)
	}
	if !strings.Contains(errs, "after block 1, default_vcpus=") || !strings.Contains(errs, " combinations; ") {
		t.Errorf("progress names no combination:\n%s", errs)
	}
	out, _ = run("tune", file, "--factor", "default_vcpus", "--factor", "cpu-limit", "--on", "model")
	for _, says := range []string{"Set default_vcpus to " + vcpus + " and cpu-limit to " + cores, "Not measured: ", "of 48 combinations", "default_vcpus  cpu-limit  of the best"} {
		if !strings.Contains(out, says) {
			t.Errorf("the output does not say %q:\n%s", says, out)
		}
	}
	inFile := strings.Replace(text, "baseline: vm\n", "stop: {tune: 90%, factors: [default_vcpus, cpu-limit]}\n", 1)
	if err := os.WriteFile(file, []byte(inFile), 0o600); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own")
	var o, e bytes.Buffer
	if code := execute(t.Context(), &o, &e, []string{"run", file, "--on", "model", "--results", own}); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, o.String(), e.String())
	}
	for _, args := range [][]string{{"report", own}, {"report", own, "--full"}} {
		o.Reset()
		if code := execute(t.Context(), &o, &e, args); code != exitOK || !strings.Contains(o.String(), "Set default_vcpus to "+vcpus+" and cpu-limit to "+cores) {
			t.Errorf("%v: exit %d, %s", args, code, o.String())
		}
	}
	// The patches come back from the folder too.
	kind := x.Patches[0].For
	for args, want := range map[string]string{
		"report --full":                 "patch for " + kind,
		"report":                        "The patches that set the answers: tare advise " + own,
		"advise":                        "patch for " + kind,
		"advise --json":                 `"for": "` + kind + `"`,
		"advise --patch " + kind:        "set default_vcpus=" + vcpus + ",cpu-limit=" + cores,
		"advise --only default_vcpus=8": "The search has found nothing for such cells.",
	} {
		o.Reset()
		verb, flags, _ := strings.Cut(args, " ")
		if code := execute(t.Context(), &o, &e, append([]string{verb, own}, strings.Fields(flags)...)); code != exitOK || !strings.Contains(strings.ReplaceAll(o.String(), "\n  ", " "), want) {
			t.Errorf("%s: exit %d, %s, want %q", args, code, o.String(), want)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--factor default_vcpus --factor sandbox":       `sandboxes have no order`,
		"--factor default_vcpus --factor threads":       `the study has no factor "threads"`,
		"--factor default_vcpus --set sandbox=process":  `no sandbox left in the study has the factor "default_vcpus"; in the file, vm has it; keep one with --set sandbox=...`,
		"--factor default_vcpus=2":                      "the factor default_vcpus has one level",
		"--factor default_vcpus --factor default_vcpus": "is in factors twice",
	} {
		o.Reset()
		e.Reset()
		if code := execute(t.Context(), &o, &e, append([]string{"tune", file, "--on", "model", "--results", filepath.Join(dir, "bad")}, strings.Fields(args)...)); code == exitOK || !strings.Contains(e.String(), want) {
			t.Errorf("%s: exit %d, %s, want %q", args, code, e.String(), want)
		}
	}
}

// TestTuneObjective: on the model, the highest rate at which the tail of the latency is short is found between two bounds, in few
// trials; a study file asks for the same; what cannot be meant is refused.
func TestTuneObjective(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	const text = `study: s
compare: rate
factors:
  sandbox: [vm]
workloads:
  ask: {kind: net, mode: rr, connections: 4, rate: [2000, 4000], warmup: 100ms, duration: 300ms}
sentinel: off
calls: off
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"tune", file, "--factor", "rate=2000..512000", "--width", "20%", "--objective", "latency_p99<1ms", "--on", "model", "--results", filepath.Join(dir, "r")}
	run := func(more ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		if code := execute(t.Context(), &o, &e, append(slices.Clone(args), more...)); code != exitOK {
			t.Fatalf("exit %d: %s%s", code, o.String(), e.String())
		}
		return o.String(), e.String()
	}
	out, errs := run("--json")
	var got struct {
		Tuned []struct {
			Answer, Upper, Stage, Objective string
			Trials, Whole                   int
			Sure                            float64
			Throughput                      float64 `json:"conditional_throughput"`
			Levels                          []struct{ Level, Bound string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Tuned) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	x := got.Tuned[0]
	lower, err := strconv.ParseFloat(x.Answer, 64)
	upper, err2 := strconv.ParseFloat(x.Upper, 64)
	if err != nil || err2 != nil || x.Stage != "found" || x.Sure < 0.95 || x.Objective != "latency_p99<1ms" || upper <= lower || upper > 1.2*lower*1.001 || 4*x.Trials > x.Whole {
		t.Errorf("%+v", x)
	}
	if x.Throughput < 0.9*lower || x.Throughput > 1.1*lower {
		t.Errorf("conditional throughput %v at %v", x.Throughput, lower)
	}
	for _, l := range x.Levels {
		if l.Level == x.Answer && l.Bound != "lower bound" || l.Level == x.Upper && l.Bound != "upper bound" {
			t.Errorf("%+v", l)
		}
	}
	if !strings.Contains(errs, "after block 1, rate ") || !strings.Contains(errs, " meets the objective, rate ") {
		t.Errorf("progress:\n%s", errs)
	}
	out, _ = run()
	for _, says := range []string{"The highest rate that meets latency_p99<1ms is " + x.Answer, x.Upper + " does not meet it", "Conditional Throughput: ", " k/s.", "lower bound", "upper bound"} {
		if !strings.Contains(out, says) {
			t.Errorf("the output does not say %q:\n%s", says, out)
		}
	}
	inFile := strings.Replace(text, "rate: [2000, 4000]", "rate: [2000, 20000, 200000, 1000000]", 1) + "stop: {objective: latency_p99<1ms}\n"
	if err := os.WriteFile(file, []byte(inFile), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	own := filepath.Join(dir, "own")
	if code := execute(t.Context(), &o, &e, []string{"run", file, "--on", "model", "--results", own}); code != exitOK || !strings.Contains(o.String(), "that meets latency_p99<1ms is ") {
		t.Errorf("exit %d: %s%s", code, o.String(), e.String())
	}
	for more, want := range map[string]string{
		"--reach best":              "--reach is a share of the best",
		"--mix ask=1":               "--mix is for a share of the best",
		"--factor sandbox":          "--objective finds the highest level of one factor",
		"--width 0.5%":              `the width "0.5%" is not between 1% and 100%`,
		"--objective latency_p98<1": `has no response "latency_p98"`,
		"--objective latency_p99<1": `"1" is not a time`,
	} {
		o.Reset()
		e.Reset()
		if code := execute(t.Context(), &o, &e, append(slices.Clone(args), strings.Fields(more+" --fresh")...)); code == exitOK || !strings.Contains(e.String(), want) {
			t.Errorf("%s: exit %d, %s, want %q", more, code, e.String(), want)
		}
	}
	for span, want := range map[string]string{"5..1": "is not a range of loads", "0..5": "is not a range of loads", "a..5": "is not a range of loads", "1..NaN": "is not a range of loads"} {
		if _, err := loads("rate", span, "10%"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", span, err)
		}
	}
	if got, err := loads("rate", "500..1000", "30%"); err != nil || got != "500,630,793.7,1000" {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := loads("rate", "5,6", "30%"); err != nil || got != "5,6" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestTuneMix: two workloads have one level, the third is left out, and the report says what each has there.
func TestTuneMix(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	err := os.WriteFile(file, []byte(`study: s
factors:
  sandbox: [vm]
  default_vcpus: [1, 2, 3, 4, 5, 6, 7, 8]
workloads:
  large: {kind: net, mode: stream, size: 64KiB, connections: [1, 2], warmup: 100ms, duration: 300ms, responses: [throughput]}
  small: {kind: net, mode: stream, size: 1KiB, connections: 8, warmup: 100ms, duration: 300ms, responses: [throughput]}
  other: {kind: net, mode: rr, responses: [rate]}
baseline: vm
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	run := func(more ...string) string {
		t.Helper()
		var o, e bytes.Buffer
		args := append([]string{"tune", file, "--factor", "default_vcpus", "--mix", "large=3,small=1", "--on", "model", "--results", filepath.Join(dir, "r")}, more...)
		if code := execute(t.Context(), &o, &e, args); code != exitOK {
			t.Fatalf("exit %d: %s%s", code, o.String(), e.String())
		}
		if len(more) == 0 && !strings.Contains(e.String(), "after block 1, the mix: ") {
			t.Errorf("progress says nothing of the mix:\n%s", e.String())
		}
		return o.String()
	}
	out := run()
	var got struct {
		Tuned []struct {
			Workload, Answer, Stage string
			Trials, Whole           int
			Mix                     []struct {
				Workload      string
				Weight, Share float64
			}
		}
	}
	if err := json.Unmarshal([]byte(run("--json")), &got); err != nil || len(got.Tuned) != 1 {
		t.Fatalf("%v, %+v", err, got)
	}
	x := got.Tuned[0]
	weights := map[string]float64{}
	for _, p := range x.Mix {
		weights[p.Workload] += p.Weight
		if p.Share <= 0.5 || p.Share > 1 {
			t.Errorf("%s has %v of its best", p.Workload, p.Share)
		}
	}
	if x.Workload != "mix" || x.Stage != "found" || x.Trials%3 != 0 || x.Trials >= x.Whole || len(x.Mix) != 3 || weights["large"] != 0.75 || weights["small"] != 0.25 {
		t.Errorf("%+v", x)
	}
	for _, says := range []string{"the mix of large and small", "of its own best", "Set default_vcpus to " + x.Answer} {
		if !strings.Contains(out, says) {
			t.Errorf("the report does not say %q:\n%s", says, out)
		}
	}
}

// TestFalls: numbers in falling order are a likely mistake; words are in the user's order.
// TestTuneDisk: the highest rate of a disk is what its machine's main loop can do, though few in flight keep the latency far below the
// limit: more is not sent. The Conditional Throughput is fio's iops.
func TestTuneDisk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	const text = `study: s
factors: {sandbox: [vm], rootfs: [block], disk_cache: [none]}
workloads:
  read: {kind: fio, bs: 4KiB, jobs: 4, iodepth: 16, engine: libaio, cache: direct, rate: 2000}
baseline: vm
sentinel: off
calls: off
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	args := []string{"tune", file, "--factor", "rate=2000..256000", "--width", "20%", "--objective", "latency_p99<5ms", "--on", "model", "--json", "--results", filepath.Join(dir, "r")}
	if code := execute(t.Context(), &o, &e, args); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, o.String(), e.String())
	}
	var got struct {
		Tuned []struct {
			Answer, Upper, Stage string
			Throughput           float64 `json:"conditional_throughput"`
		}
	}
	if err := json.Unmarshal(o.Bytes(), &got); err != nil || len(got.Tuned) != 1 {
		t.Fatalf("%v: %s", err, o.String())
	}
	x := got.Tuned[0]
	const loop = 1 / 6.5e-6 // requests a second
	lower, err := strconv.ParseFloat(x.Answer, 64)
	upper, err2 := strconv.ParseFloat(x.Upper, 64)
	if err != nil || err2 != nil || x.Stage != "found" || lower > loop || upper < 0.97*loop || math.Abs(x.Throughput-lower) > 0.05*lower {
		t.Errorf("%+v", x)
	}
}

// TestRangeNeedsObjective: a range without --objective is refused as one, and not as a factor with one level.
func TestRangeNeedsObjective(t *testing.T) {
	f := tuneFlags{factors: []string{"default_vcpus=1..8"}, reach: "90%"}
	if _, _, err := f.asked(); err == nil || !strings.Contains(err.Error(), "is for the load of --objective; write the levels one by one, such as --factor default_vcpus=1,2,4,8") {
		t.Error(err)
	}
}

func TestFalls(t *testing.T) {
	for text, want := range map[string]bool{"4,2,1": true, "4, 2": true, "1,2,4": false, "4,1,2": false, "none,2": false, "shared,exclusive": false} {
		if got := falls(strings.Split(text, ",")); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestTuneOverrides: the study is read with the overrides, which may make it possible or leave out its baseline; numbers out of order
// are refused.
func TestTuneOverrides(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	err := os.WriteFile(file, []byte(`study: s
factors:
  sandbox: [vm]
  rootfs: [block]
  disk_cache: [none]
  io_threads: [0, 1, 2, 4]
  io_threads_pinned: [false, true]
compare: io_threads_pinned
baseline: true
workloads:
  read: {kind: fio, rw: randread, bs: 64KiB, size: 64MiB, engine: libaio, iodepth: 16, cache: direct, duration: 300ms, warmup: 100ms, responses: [throughput]}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--factor", "io_threads"}, exitUsage, "there are no I/O threads to bind"},
		{[]string{"--factor", "io_threads", "--set", "io_threads_pinned=true"}, exitUsage, "there are no I/O threads to bind"},
		{[]string{"--factor", "io_threads", "--set", "io_threads_pinned=false", "--set", "baseline=false"}, exitOK, "Set io_threads to "},
		{[]string{"--factor", "io_threads=1,2", "--set", "io_threads_pinned=true"}, exitOK, "Set io_threads to "},
		{[]string{"--factor", "io_threads=1,2", "--set", "io_threads_pinned=true", "--reach", "40%"}, exitUsage, `--reach "40%": tune "40%" is not possible`},
		{[]string{"--factor", "io_threads", "--mix", "nope=1"}, exitUsage, `--mix "nope=1": there is no workload "nope"`},
		{[]string{"--factor", "io_threads", "--mix", "nope=1", "--set", "workload=nope"}, exitUsage, `--set "workload=nope": there is no workload "nope"`},
		{[]string{"--factor", "io_threads=1,many"}, exitUsage, `--factor "io_threads=1,many": `},
		{[]string{"--factor", "io_threads=4,0,2", "--set", "io_threads_pinned=false", "--set", "baseline=false"}, exitUsage, "the levels of io_threads are not in order, and the lowest of them is asked for: 4, 0, 2; write 0, 2, 4"},
	} {
		var o, e bytes.Buffer
		args := append([]string{"tune", file, "--on", "model", "--results", filepath.Join(dir, strings.Join(c.args, ""))}, c.args...)
		if code := execute(t.Context(), &o, &e, args); code != c.code || !strings.Contains(o.String()+e.String(), c.says) {
			t.Errorf("%v: exit %d, want %d: %s%s", c.args, code, c.code, o.String(), e.String())
		}
	}
}

// TestTuneContinues: the advice after a search that its budget ended is the command that goes on with it; that command keeps the trials. It asks
// for no more blocks of everything.
func TestTuneContinues(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	write := func(stop string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("study: s\nfactors: {sandbox: [vm], default_vcpus: [1, 2, 3, 4, 5, 6, 7, 8], cpu-limit: [none, 6]}\nbaseline: vm\nworkloads:\n"+
			"  a: {kind: net, mode: stream, size: 4KiB, connections: 4, warmup: 100ms, duration: 300ms, responses: [throughput]}\n"+stop), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		stop string
		args []string
		want string // the command before its budget
	}{
		"tune":    {"", []string{"tune", "--factor", "default_vcpus=1,2,4,8", "--reach", "95%", "--set", "cpu-limit=none", "--budget", "20s"}, "tune FILE --results DIR --on model --factor default_vcpus --set cpu-limit=none --set default_vcpus=1,2,4,8 --reach 95%"},
		"several": {"", []string{"tune", "--factor", "default_vcpus=1,2,4", "--factor", "cpu-limit", "--budget", "20s"}, "tune FILE --results DIR --on model --factor default_vcpus --factor cpu-limit --set default_vcpus=1,2,4 --reach 90%"},
		"study":   {"compare: default_vcpus\nstop: {tune: 90%}\nbudget: {time: 20s}\n", []string{"run", "--set", "baseline=1"}, "run FILE --results DIR --on model --set baseline=1"},
		"blocks":  {"compare: default_vcpus\nstop: {tune: best}\nbudget: {blocks: 3}\n", []string{"run", "--set", "baseline=1"}, "run FILE --results DIR --on model --set baseline=1"},
	} {
		t.Run(name, func(t *testing.T) {
			write(c.stop)
			results := filepath.Join(dir, name)
			call := func(args ...string) string {
				t.Helper()
				var o, e bytes.Buffer
				if code := execute(t.Context(), &o, &e, args); code != exitOK {
					t.Fatalf("%s: exit %d: %s", args, code, e.String())
				}
				return o.String() + e.String()
			}
			call(append([]string{c.args[0], file, "--on", "model", "--results", results}, c.args[1:]...)...)
			said := strings.Join(strings.Fields(call("advise", results)), " ")
			_, command, ok := strings.Cut(said, "with this command: tare ")
			if !ok || strings.Contains(said, "More blocks decide ") {
				t.Fatalf("tare advise says: %s", said)
			}
			want := strings.NewReplacer("FILE", filepath.Join(results, "study.yaml"), "DIR", results).Replace(c.want)
			command, _, _ = strings.Cut(command, ". ")
			if budget, ok := strings.CutPrefix(command, want+" "); !ok || !strings.HasPrefix(budget, "--budget ") && budget != "--set budget.blocks=6" {
				t.Fatalf("the command is\n%.300s\nwant\n%s", command, want)
			}
			if again := call(strings.Fields(command)...); strings.Contains(again, ", 0 trials done") || !strings.Contains(again, "trials done") || strings.Contains(again, "is finished") {
				t.Errorf("it does not go on: %s", again)
			}
		})
	}
}
