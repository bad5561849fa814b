package startup

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures are launches of a busybox that prints one byte, by runc 1.1.5 and
// by runsc, timed from outside on a busy two-core machine.
func cases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "runc", Outputs: map[string]string{"main": "testdata/runc.jsonl"}},
		{Name: "runsc", Outputs: map[string]string{"main": "testdata/runsc.jsonl"}},
		{Name: "true", Params: param.Values{"program": "true"}, Outputs: map[string]string{"main": "testdata/runc.jsonl"}},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

func parse(t *testing.T, text string, v param.Values) (map[string]float64, error) {
	t.Helper()
	v, err := param.Fill(New().Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New().Parse("main", v, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, s := range r.Samples {
		name := s.Name
		if s.Labels != "" {
			name += "{" + string(s.Labels) + "}"
		}
		out[name] = s.Value
	}
	return out, nil
}

func TestMedians(t *testing.T) {
	b, err := os.ReadFile("testdata/runc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(t, string(b), nil)
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
	got, err := parse(t, `{"mode":"whole","instruction_s":0.002,"exited_s":0.003,"deleted_s":0.004}
{"mode":"phased","instruction_s":0.002,"exited_s":0.0015,"deleted_s":0.004}`, param.Values{"repeats": "1"})
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

func TestBad(t *testing.T) {
	for text, want := range map[string]string{
		`{"mode":"whole","deleted_s":1}`:                                      "5 of each",
		`{"mode":"some","deleted_s":1}`:                                       "neither",
		`{"mode":"whole"}`:                                                    "missing",
		`{"mode":"whole","deleted_s":-1}`:                                     "out of range",
		`{"mode":"phased","created_s":2,"started_s":1,"deleted_s":3}`:         "back in time",
		`{"mode":"whole","exited_s":4,"deleted_s":3}`:                         "back in time",
		"runc: exec failed":                                                   "line 1",
		`{"mode":"whole","deleted_s":1}` + "\n" + `{"mode":"whole","deleted_`: "line 2",
	} {
		if _, err := parse(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
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
