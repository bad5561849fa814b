package startup

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures are launches of a busybox that prints one byte, by runc 1.1.5 and
// by runsc, timed from outside on a busy two-core machine; and of the services of
// the images node and ruby, by tare itself.
func cases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "runc", Outputs: map[string]string{"main": "testdata/runc.jsonl"}},
		{Name: "runsc", Outputs: map[string]string{"main": "testdata/runsc.jsonl"}},
		{Name: "true", Params: param.Values{"program": "true"}, Outputs: map[string]string{"main": "testdata/runc.jsonl"}},
		{Name: "node", Params: param.Values{"program": "node", "repeats": "3"}, Outputs: map[string]string{"main": "testdata/node-runsc.jsonl"}},
		{Name: "ruby", Params: param.Values{"program": "ruby", "repeats": "3"}, Outputs: map[string]string{"main": "testdata/ruby-runc.jsonl"}},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

func TestMedians(t *testing.T) {
	b, err := os.ReadFile("testdata/runc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := workloadtest.Parse(t, New(), "main", nil, string(b))
	if err != nil {
		t.Fatal(err)
	}
	// Read off the file by hand: the third of the five sorted figures.
	for name, want := range map[string]float64{
		"total": 0.032695, "total{stat=min}": 0.028881, "total{stat=max}": 0.035202,
		"instruction": 0.031101, "create": 0.02413,
	} {
		if got[name] != want {
			t.Errorf("%s = %g, want %g", name, got[name], want)
		}
	}
}

// TestMissingSteps: a process has no create and no start; its figures are left
// out, not zero.
func TestMissingSteps(t *testing.T) {
	got, err := workloadtest.Parse(t, New(), "main", param.Values{"repeats": "1"}, `{"mode":"whole","instruction_s":0.002,"exited_s":0.003,"deleted_s":0.004}
{"mode":"phased","instruction_s":0.002,"exited_s":0.0015,"deleted_s":0.004}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"create", "start", "exit"} {
		if x, ok := got[name]; ok {
			t.Errorf("%s = %g, want none", name, x)
		}
	}
	if got["total"] != 0.004 || got["delete"] != 0.0025 {
		t.Errorf("got %v", got)
	}
}

// TestServer: a server's life is cut at its answer, so that there is no end of its
// own and no total.
func TestServer(t *testing.T) {
	got, err := workloadtest.Parse(t, New(), "main", param.Values{"repeats": "2", "program": "node"}, `{"mode":"whole","answered_s":1.5,"deleted_s":1.75}
{"mode":"phased","created_s":0.25,"started_s":0.375,"answered_s":1.25,"deleted_s":1.5}
{"mode":"whole","answered_s":2.5,"deleted_s":2.75}
{"mode":"phased","created_s":0.75,"started_s":1.375,"answered_s":1.25,"deleted_s":2}`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"answer": 2, "answer{stat=min}": 1.5, "answer{stat=max}": 2.5,
		"create": 0.5, "create{stat=min}": 0.25, "create{stat=max}": 0.75,
		"start": 0.375, "start{stat=min}": 0.125, "start{stat=max}": 0.625,
		"ready": 0.875, "ready{stat=min}": 0.875, "ready{stat=max}": 0.875, // the second answered before the call returned
		"delete": 0.5, "delete{stat=min}": 0.25, "delete{stat=max}": 0.75,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	_, err = workloadtest.Parse(t, New(), "main", param.Values{"repeats": "1", "program": "ruby"}, `{"mode":"whole","deleted_s":1.75}
{"mode":"phased","answered_s":1.25,"deleted_s":1.5}`)
	if err == nil || !strings.Contains(err.Error(), "first answer") {
		t.Errorf("a launch without an answer gives %v", err)
	}
}

// TestServersAnswer: the services come from their images, and are asked over HTTP.
func TestServersAnswer(t *testing.T) {
	for _, program := range []string{"node", "ruby"} {
		v, _ := param.Fill(New().Params(), param.Values{"program": program})
		roles, err := New().Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		r := roles[0]
		if r.Image != program || r.Probe == nil || r.Probe.Path != "/" || !slices.Contains(r.Args, strconv.Itoa(r.Probe.Port)) {
			t.Errorf("%s: %+v", program, r)
		}
		if first := New().Responses(v)[0]; first.Name != "answer" || first.Operation != "run" {
			t.Errorf("%s: the first response is %+v", program, first)
		}
	}
}

func TestBad(t *testing.T) {
	for text, want := range map[string]string{
		`{"mode":"whole","deleted_s":1}`:                                      "5 of each",
		`{"mode":"some","deleted_s":1}`:                                       "unknown mode",
		`{"mode":"whole"}`:                                                    "missing",
		`{"mode":"whole","deleted_s":-1}`:                                     "out of range",
		`{"mode":"phased","created_s":2,"started_s":1,"deleted_s":3}`:         "not in order",
		`{"mode":"whole","exited_s":4,"deleted_s":3}`:                         "not in order",
		`{"mode":"whole","answered_s":4,"deleted_s":3}`:                       "not in order",
		"runc: exec failed":                                                   "line 1",
		`{"mode":"whole","deleted_s":1}` + "\n" + `{"mode":"whole","deleted_`: "line 2",
	} {
		if _, err := workloadtest.Parse(t, New(), "main", nil, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

func TestRoles(t *testing.T) {
	v, _ := param.Fill(New().Params(), param.Values{"repeats": "7", "program": "true"})
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	if r := roles[0]; r.Mode != workload.Launch || r.Count != 7 || !slices.Equal(r.Needs, []string{"true"}) {
		t.Errorf("role = %+v", r)
	}
	if slices.ContainsFunc(New().Responses(v), func(r record.Response) bool { return r.Name == "instruction" }) {
		t.Error("true prints nothing, and so has no first instruction to see")
	}
}

// TestCold: a cold start has the same role with Cold set, and a longer expected time. The default is warm.
func TestCold(t *testing.T) {
	for image, cold := range map[string]bool{"": false, "warm": false, "cold": true} {
		v := param.Values{"repeats": "3", "burst": "2"}
		if image != "" {
			v["image"] = image
		}
		roles, err := New().Roles(workloadtest.Fill(t, New(), v))
		if err != nil || roles[0].Cold != cold || roles[0].Launches() != 12 {
			t.Errorf("image %q: %+v, %v", image, roles, err)
		}
		if want := 6*perLaunch + 12*perPull; cold && roles[0].Expect != want {
			t.Errorf("expected time %s, want %s", roles[0].Expect, want)
		}
	}
}
