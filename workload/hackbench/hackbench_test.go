package hackbench

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/workloadtest"
)

// The captures were made by hackbench 2.4 (Debian 12, rt-tests) on two cores:
// natively, in runc, and inside gVisor (runsc).
func cases() []workloadtest.Case {
	file := func(name string) map[string]string { return map[string]string{"main": "testdata/" + name} }
	return []workloadtest.Case{
		{Name: "pipes", Outputs: file("process-pipe-process.txt")},
		{Name: "sockets in runc", Params: param.Values{"ipc": "socket"}, Outputs: file("runc-socket-process.txt")},
		{Name: "gVisor", Outputs: file("runsc-systrap-pipe-process.txt")},
		{Name: "gVisor, threads", Params: param.Values{"ipc": "socket", "tasks": "thread"}, Outputs: file("runsc-systrap-socket-thread.txt")},
		{Name: "gVisor, ptrace", Params: param.Values{"tasks": "thread"}, Outputs: file("runsc-ptrace-pipe-thread.txt")},
		{Name: "a crowd", Params: param.Values{"groups": "100", "senders": "100"}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

func parseAs(t *testing.T, text string, v param.Values) (record.Reading, error) {
	t.Helper()
	v, err := param.Fill(New().Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	return New().Parse("main", v, strings.NewReader(text))
}

func capture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMedian reads the times by another way, and compares.
func TestMedian(t *testing.T) {
	text := capture(t, "runsc-systrap-pipe-process.txt")
	var times []float64
	for line := range strings.Lines(text) {
		var x float64
		if _, err := fmt.Sscanf(line, "Time: %f", &x); err == nil {
			times = append(times, x)
		}
	}
	r, err := parseAs(t, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 1 || !slices.Equal(r.Series[0].V, times) || r.Series[0].T[0] != time.Duration(times[0]*1e9) {
		t.Errorf("series %+v, want %v", r.Series, times)
	}
	if i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == record.Runs }); i < 0 || r.Samples[i].Value != float64(len(times)) {
		t.Errorf("%+v, want %d runs", r.Samples, len(times))
	}
	slices.Sort(times)
	for labels, want := range map[record.Labels]float64{"": times[1], "stat=min": times[0], "stat=max": times[2]} {
		i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == "time" && s.Labels == labels })
		if i < 0 || r.Samples[i].Value != want {
			t.Errorf("time{%s}: %+v, want %g", labels, r.Samples, want)
		}
	}
}

func TestBadOutput(t *testing.T) {
	good := capture(t, "process-pipe-process.txt")
	for _, c := range []struct {
		name, text string
		v          param.Values
		want       string
	}{
		{"files", capture(t, "too-many-files.txt"), nil, "Too many open files"},
		{"option", capture(t, "bad-option.txt"), nil, "requires an integer"},
		{"too short", capture(t, "too-short.txt"), param.Values{"groups": "1", "senders": "2", "loops": "100"}, "increase loops"},
		{"coarse", strings.ReplaceAll(good, "Time: 0.0", "Time: 0.00"), nil, ""},
		{"other mode", good, param.Values{"tasks": "thread"}, "not of 2 groups with 40 tasks (thread)"},
		{"other size", good, param.Values{"size": "200B"}, "of 100 bytes, not of"},
		{"fewer runs", good, param.Values{"repeats": "4"}, "the report has 3 runs, but 4 were requested"},
		{"cut", good[:strings.LastIndex(good, "Time")], nil, "ends within a run"},
		{"no head", good[strings.Index(good, "Time"):], nil, "without the lines that describe its run"},
		{"no number", strings.ReplaceAll(good, "Time: 0", "Time: x"), nil, "not a time"},
	} {
		r, err := parseAs(t, c.text, c.v)
		if c.want == "" {
			if err != nil || len(r.Warnings) != 1 || r.Warnings[0].Code != "coarse-time" {
				t.Errorf("%s: %+v, %v; want the warning coarse-time", c.name, r.Warnings, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", c.name, err, c.want)
		}
	}
}

// TestReal runs the installed hackbench as Roles says.
func TestReal(t *testing.T) {
	if _, err := exec.LookPath("hackbench"); err != nil {
		t.Skip("hackbench is not installed (package rt-tests)")
	}
	for _, ipc := range []string{"pipe", "socket"} {
		for _, tasks := range []string{"process", "thread"} {
			v, err := param.Fill(New().Params(), param.Values{"ipc": ipc, "tasks": tasks})
			if err != nil {
				t.Fatal(err)
			}
			roles, err := New().Roles(v)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(roles[0].Args[0], roles[0].Args[1:]...).Output()
			if err != nil {
				t.Fatalf("%v: %v\n%s", roles[0].Args, err, out)
			}
			if _, err := New().Parse("main", v, strings.NewReader(string(out))); err != nil {
				t.Errorf("%s, %s: %v\n%s", ipc, tasks, err, out)
			}
		}
	}
}
