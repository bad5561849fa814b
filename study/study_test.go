package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/param"
	"tare/record"
)

// testCatalogue is a small world with every kind of trouble in it: a workload
// with two ends, one whose responses depend on a parameter, one that refuses a
// combination, a kind with parameters of its own.
func testCatalogue() Catalogue {
	return Catalogue{
		Workloads: map[string]WorkloadInfo{
			"net": {
				Params: []param.Param{
					{Name: "mode", Type: param.Enum, Default: "stream", Words: []string{"stream", "rr"}, Help: "what is sent"},
					{Name: "message", Type: param.Size, Default: "64KiB", Min: 1, Max: 1 << 24, Help: "bytes a message"},
					{Name: "size", Type: param.Size, Default: "64", Min: 1, Max: 1 << 24, Help: "bytes a message, as the real net calls it"},
					{Name: "connections", Type: param.Int, Default: "1", Min: 1, Max: 1024, Help: "at once"},
					{Name: "duration", Type: param.Duration, Default: "1s", Min: 0.001, Max: 3600, Help: "how long"},
					{Name: "rate", Type: param.Float, Offered: true, Default: "0", Min: 0, Max: 1e7, Help: "messages a second; 0 as fast as it goes"},
				},
				Responses: func(v param.Values) []record.Response {
					if v.Str("mode") == "rr" {
						return []record.Response{
							{Name: "latency_p50", Unit: record.Second, Better: record.Lower},
							{Name: "latency", Unit: record.Second, Better: record.Lower},
							{Name: "rate", Unit: record.PerSecond, Better: record.Higher},
						}
					}
					return []record.Response{
						{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher},
						{Name: "messages", Unit: record.Count, Better: record.Neither},
					}
				},
				Check: func(v param.Values) error {
					if v.Str("mode") == "stream" && v.Float("rate") > 0 {
						return errors.New("mode stream has no rate; remove rate or write mode: rr")
					}
					return nil
				},
				Endpoints: 2,
			},
			"cpu": {
				Params: []param.Param{
					{Name: "threads", Type: param.Int, Default: "1", Min: 1, Max: 1024, Help: "how many"},
					{Name: "duration", Type: param.Duration, Default: "1s", Min: 1, Max: 60, Help: "how long"},
				},
				Responses: func(param.Values) []record.Response {
					return []record.Response{{Name: "events", Unit: record.PerSecond, Better: record.Higher}}
				},
				Endpoints: 1,
			},
			"noop": {Endpoints: 1, Responses: func(param.Values) []record.Response {
				return []record.Response{{Name: "elapsed", Unit: record.Second, Better: record.Lower}}
			}},
		},
		Sandboxes: map[string]SandboxInfo{
			"process": is(record.Traits{Family: record.FamilyNative, OwnKernel: record.No}),
			"runc":    is(record.Traits{Family: record.FamilyContainer, Runtime: "runc", OwnKernel: record.No}),
			"crun":    is(record.Traits{Family: record.FamilyContainer, Runtime: "crun"}),
			"runsc-systrap": is(record.Traits{Family: record.FamilyGVisor, Runtime: "runsc", OwnKernel: record.Yes},
				param.Param{Name: "directfs", Type: param.Bool, Default: "true", Help: "direct file access"}),
			"vm": is(record.Traits{Family: record.FamilyVM, OwnKernel: record.Yes},
				param.Param{Name: "vcpus", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "virtual processors"},
				param.Param{Name: "iothreads", Type: param.Int, Default: "0", Min: 0, Max: 16, Help: "I/O threads"}),
		},
		Native: "process",
		Bases: []Base{
			{Name: "oci", About: "a container", Keys: ownKeys(), Define: func(_ string, v param.Values) (SandboxInfo, error) {
				if v.Str("runtime") == "" {
					return SandboxInfo{}, errors.New("runtime is missing; write the path of one")
				}
				t := record.Traits{Family: record.FamilyContainer, Runtime: filepath.Base(v.Str("runtime"))}
				if t.Runtime == "youki" {
					t.OwnKernel = record.No
				}
				return is(t, param.Param{Name: "patience", Type: param.Int, Default: "1", Help: "of a sandbox that a study defines"}), nil
			}},
			{Name: "vm", About: "a machine", Keys: append(ownKeys(), param.Param{Name: "firmware", Type: param.Enum, Default: "none", Words: []string{"none", "uefi"}, Help: "what boots it"}),
				Define: func(string, param.Values) (SandboxInfo, error) {
					return is(record.Traits{Family: record.FamilyVM}), nil
				}},
		},
		Collectors: []string{"proc", "cgroup", "system"},
	}
}

// is a kind of sandbox with these traits.
func is(t record.Traits, ps ...param.Param) SandboxInfo {
	return SandboxInfo{Params: ps, Traits: func(param.Values) record.Traits { return t }}
}

func ownKeys() []param.Param {
	return []param.Param{{Name: "runtime", Type: param.String, Help: "a program"}, {Name: "args", Type: param.List, Help: "its arguments"}}
}

func mustParse(t testing.TB, src string, sets ...string) *Study {
	t.Helper()
	s, err := Parse("test.yaml", []byte(src), testCatalogue(), sets)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return s
}

func readTestdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outline writes the strata of a study with their treatments, one line each.
func outline(s *Study) string {
	var b strings.Builder
	for i, st := range s.Strata {
		fmt.Fprintf(&b, "%s [%s] baseline %d:", st.Key, s.Workloads[st.Workload].Label, st.Baseline)
		for _, c := range st.Cells {
			fmt.Fprintf(&b, " %s;", s.Treatment(i, c))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func cells(s *Study) []string {
	var out []string
	for _, st := range s.Strata {
		for _, c := range st.Cells {
			out = append(out, c.Key())
		}
	}
	return out
}

func TestParseFirst(t *testing.T) {
	s := mustParse(t, readTestdata(t, "first.yaml"))
	const want = `workload=stream,cpu-limit=none,memory-limit=none,isolate=server [stream] baseline 0: sandbox=process; sandbox=runc; sandbox=runsc-systrap; sandbox=youki;
workload=stream,cpu-limit=1,memory-limit=256MiB,isolate=server [stream] baseline 0: sandbox=process; sandbox=runc; sandbox=runsc-systrap; sandbox=youki;
workload=stream,cpu-limit=2,memory-limit=512MiB,isolate=server [stream] baseline 0: sandbox=process; sandbox=runc; sandbox=runsc-systrap; sandbox=youki;
workload=rr,cpu-limit=none,memory-limit=none,isolate=server,message=1B [rr] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=rr,cpu-limit=none,memory-limit=none,isolate=server,message=4KiB [rr] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=rr,cpu-limit=1,memory-limit=256MiB,isolate=server,message=1B [rr] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=rr,cpu-limit=1,memory-limit=256MiB,isolate=server,message=4KiB [rr] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=rr,cpu-limit=2,memory-limit=512MiB,isolate=server,message=1B [rr] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=rr,cpu-limit=2,memory-limit=512MiB,isolate=server,message=4KiB [rr] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=noop,cpu-limit=none,memory-limit=none [noop] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=noop,cpu-limit=1,memory-limit=256MiB [noop] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=noop,cpu-limit=2,memory-limit=512MiB [noop] baseline 0: sandbox=process; sandbox=runc; sandbox=crun; sandbox=runsc-systrap; sandbox=youki;
workload=stream,cpu-limit=8,memory-limit=1GiB,isolate=server [stream] baseline 0: sandbox=process; sandbox=runc;
`
	if diff := cmp.Diff(want, outline(s)); diff != "" {
		t.Errorf("strata (-want +got):\n%s", diff)
	}
	s.Strata, s.Source = nil, nil
	wantStudy := &Study{
		Name: "first", About: "What isolation costs on this machine.", Seed: 1, Compare: "sandbox", Baseline: "process",
		Factors: []Factor{
			{"workload", []string{"stream", "rr", "noop"}},
			{"sandbox", []string{"process", "runc", "crun", "runsc-systrap", "youki"}},
			{"cpu-limit", []string{"none", "1", "2", "8"}},
			{"memory-limit", []string{"none", "256MiB", "512MiB", "1GiB"}},
			{"isolate", []string{"server"}},
			{"message", []string{"1B", "4KiB"}},
		},
		Workloads: []Workload{
			{Label: "stream", Kind: "net", Params: param.Values{"mode": "stream", "message": "64KiB", "duration": "1s"}, Responses: []string{"throughput"}, Line: 14},
			{Label: "rr", Kind: "net", Params: param.Values{"mode": "rr"}, Responses: []string{"latency_p50", "latency", "rate"}, Line: 15},
			{Label: "noop", Kind: "noop", Params: param.Values{}, Responses: []string{"elapsed"}, Line: 16},
		},
		Stop:    Stop{Looks: []int{3, 4, 6, 8, 12, 16}, Confidence: 0.95, Width: 0.05, Margin: 0.03},
		Budget:  Budget{Blocks: 16, Time: 4 * time.Minute},
		Collect: Collect{Names: []string{"proc", "cgroup", "system"}, Interval: 100 * time.Millisecond},
		Retries: 1, Timeout: time.Minute,
		Sandboxes: []Sandbox{{Name: "youki", Kind: "oci", Values: param.Values{"runtime": "youki", "args": "--debug"}, Line: 7}},
		Traits: map[string]record.Traits{
			"process":       {Family: record.FamilyNative, OwnKernel: record.No},
			"runc":          {Family: record.FamilyContainer, Runtime: "runc", OwnKernel: record.No},
			"crun":          {Family: record.FamilyContainer, Runtime: "crun"},
			"runsc-systrap": {Family: record.FamilyGVisor, Runtime: "runsc", OwnKernel: record.Yes},
			"vm":            {Family: record.FamilyVM, OwnKernel: record.Yes},
			"youki":         {Family: record.FamilyContainer, Runtime: "youki", OwnKernel: record.No},
		},
	}
	if diff := cmp.Diff(wantStudy, s, cmpopts.IgnoreUnexported(Sandbox{})); diff != "" {
		t.Errorf("study (-want +got):\n%s", diff)
	}
}

// Factors nested under the compared one, directly or through another, are part
// of the treatment; a workload's are part of the stratum.
func TestNested(t *testing.T) {
	s := mustParse(t, readTestdata(t, "nested.yaml"))
	const treatments = "sandbox=process; sandbox=runc; sandbox=vm,vcpus=1; sandbox=vm,vcpus=2,iothreads=0; sandbox=vm,vcpus=2,iothreads=1;\n"
	want := "workload=rr,message=1B [rr] baseline 0: " + treatments +
		"workload=rr,message=64KiB [rr] baseline 0: " + treatments +
		"workload=cpu [cpu] baseline 0: " + treatments
	if diff := cmp.Diff(want, outline(s)); diff != "" {
		t.Errorf("strata (-want +got):\n%s", diff)
	}
}

// With another factor compared, the sandbox and what is nested under it belong
// to the stratum.
func TestCompareOther(t *testing.T) {
	s := mustParse(t, `
study: limits
compare: cpu-limit
baseline: none
factors: {cpu-limit: [none, 1], sandbox: [runc, vm], vcpus: [1, 2]}
workloads: {cpu: {}}
`)
	const want = `workload=cpu,sandbox=runc [cpu] baseline 0: cpu-limit=none; cpu-limit=1;
workload=cpu,sandbox=vm,vcpus=1 [cpu] baseline 0: cpu-limit=none; cpu-limit=1;
workload=cpu,sandbox=vm,vcpus=2 [cpu] baseline 0: cpu-limit=none; cpu-limit=1;
`
	if diff := cmp.Diff(want, outline(s)); diff != "" {
		t.Errorf("strata (-want +got):\n%s", diff)
	}
}

// A factor that moves together with the compared one is part of the treatment.
func TestZipWithCompared(t *testing.T) {
	s := mustParse(t, `
study: z
factors: {sandbox: [process, runc], cpu-limit: [none, 1], memory-limit: [none, 1GiB]}
zip: [[sandbox, cpu-limit]]
workloads: {cpu: {}}
`)
	const want = `workload=cpu,memory-limit=none [cpu] baseline 0: sandbox=process,cpu-limit=none; sandbox=runc,cpu-limit=1;
workload=cpu,memory-limit=1GiB [cpu] baseline 0: sandbox=process,cpu-limit=none; sandbox=runc,cpu-limit=1;
`
	if diff := cmp.Diff(want, outline(s)); diff != "" {
		t.Errorf("strata (-want +got):\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	s := mustParse(t, "study: d\nfactors: {sandbox: [process, runc]}\nworkloads: {net: {}}\n")
	if s.Seed != 1 || s.Retries != 1 || s.Timeout != 0 || s.Collect.Interval != 100*time.Millisecond || len(s.Collect.Names) != 3 || s.Budget != (Budget{}) {
		t.Errorf("defaults: %+v", s)
	}
	if diff := cmp.Diff([]string{"throughput"}, s.Workloads[0].Responses); diff != "" {
		t.Errorf("responses without a better direction are not compared (-want +got):\n%s", diff)
	}
}

// TestParametersOfADefinition: a sandbox of the study's own has the parameters that its
// definition gives it, as a kind of tare's has.
func TestParametersOfADefinition(t *testing.T) {
	s := mustParse(t, `
study: own
sandboxes: {mine: {runtime: /opt/youki}}
factors: {sandbox: [process, mine], patience: [1, 2]}
workloads: {cpu: {}}
`)
	var got []string
	for _, c := range s.Strata[0].Cells {
		got = append(got, s.Treatment(0, c).String())
	}
	if diff := cmp.Diff([]string{"sandbox=process", "sandbox=mine,patience=1", "sandbox=mine,patience=2"}, got); diff != "" {
		t.Errorf("treatments (-want +got):\n%s", diff)
	}
}

func TestResolve(t *testing.T) {
	cat := testCatalogue()
	s := mustParse(t, `
study: r
sandboxes: {youki: {runtime: /opt/youki}}
factors: {sandbox: [process, youki, vm], vcpus: [4], isolate: [both], cpu-limit: [1.5], memory-limit: [64MiB], cpus: ["0-1"]}
workloads: {rr: {kind: net, mode: rr, message: [4k]}, cpu: {}}
`)
	got, err := s.Resolve(cat, s.Strata[0].Cells[2])
	if err != nil {
		t.Fatal(err)
	}
	want := Resolved{Workload: s.Workloads[0], Params: param.Values{"mode": "rr", "message": "4k", "size": "64", "connections": "1", "duration": "1s", "rate": "0"},
		Sandbox: "vm", Traits: record.Traits{Family: record.FamilyVM, OwnKernel: record.Yes}, Isolate: "both", CPULimit: 1.5, MemoryLimit: 64 << 20, CPUs: "0-1", Options: param.Values{"vcpus": "4", "iothreads": "0"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Resolve (-want +got):\n%s", diff)
	}
	got, err = s.Resolve(cat, record.Cell{{Factor: "workload", Value: "cpu"}, {Factor: "sandbox", Value: "process"}, {Factor: "cpu-limit", Value: "none"}, {Factor: "cpus", Value: "any"}})
	if err != nil || got.CPULimit != 0 || got.CPUs != "" || got.Isolate != "both" || got.Sandbox != "process" {
		t.Errorf("Resolve without limits: %+v, %v", got, err)
	}
	for _, bad := range []record.Cell{
		{{Factor: "workload", Value: "gone"}},
		{{Factor: "workload", Value: "cpu"}, {Factor: "sandbox", Value: "runc"}, {Factor: "vcpus", Value: "1"}},
	} {
		if _, err := s.Resolve(cat, bad); err == nil {
			t.Errorf("Resolve(%s) took a cell that is not of this study", bad)
		}
	}
}

func TestCatalogueCheck(t *testing.T) {
	cat := testCatalogue()
	if err := cat.Check(); err != nil {
		t.Errorf("a good catalogue: %v", err)
	}
	cat.Sandboxes["odd"] = is(record.Traits{}, param.Param{Name: "duration", Type: param.Duration})
	cat.Workloads["odd"] = WorkloadInfo{Params: []param.Param{{Name: "kind"}, {Name: "cpus"}}}
	const want = `workload odd: parameter "kind" is a key of every workload; give it another name
workload odd: parameter "cpus" is a factor of tare itself; give it another name
sandbox odd: parameter "duration" belongs to workload cpu already; give it another name`
	if err := cat.Check(); err == nil || err.Error() != want {
		t.Errorf("Check = %v\nwant %s", err, want)
	}
}

// TestNoneIsZero: none and 0 are one level of a number that may be 0.
func TestNoneIsZero(t *testing.T) {
	threads := []param.Param{{Name: "io_threads", Type: param.Int, Max: 16, Words: []string{"none"}}}
	limit := []param.Param{{Name: "limit", Type: param.Int, Min: 1, Max: 16, Words: []string{"none"}}}
	if a, b := canonical(threads, "none"), canonical(threads, "0"); a != b {
		t.Errorf("none is %q, 0 is %q", a, b)
	}
	if got := canonical(limit, "none"); got != "none" {
		t.Errorf("none is %q where 0 is not a value", got)
	}
}
