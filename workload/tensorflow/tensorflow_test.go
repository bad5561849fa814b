package tensorflow

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/timed/timedtest"
	"tare/workload/workloadtest"
)

// The captures are of TensorFlow 2.21.0 and Python 3.11.2 on two cores, busy with
// other work: natively, and inside gVisor (runsc, platform systrap).
func cases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "default", Outputs: map[string]string{"main": "testdata/native-100.txt"}},
		{Name: "gVisor", Params: param.Values{"steps": "20", "batch": "32", "threads": "1"}, Outputs: map[string]string{"main": "testdata/runsc-20.txt"}},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases()...) }

// printed makes what the script prints of a training: the first step takes 1 s,
// each other 10 ms with 10 ms between them, but the last, which takes 90 ms.
func printed(steps, batch int, loss func(n int) string) string {
	var b strings.Builder
	b.WriteString("I0000 a library's note\n" + `{"event": "imported", "seconds": 2.5, "tensorflow": "2.21.0"}` + "\n")
	at := 3.0
	for n := 1; n <= steps; n++ {
		took := 0.01
		switch n {
		case 1:
			took = 1
		case steps:
			took = 0.09
		}
		at += 0.01 + took
		fmt.Fprintf(&b, `{"event": "step", "n": %d, "at": %.6f, "seconds": %.6f, "loss": %s}`+"\n", n, at, took, loss(n))
	}
	fmt.Fprintf(&b, `{"event": "end", "steps": %d, "batch": %d, "right": 0.9, "seconds": %.6f}`+"\n", steps, batch, at)
	fmt.Fprintf(&b, "\n"+`{"timed_ns":%d,"user_ns":1,"system_ns":1}`+"\n", int64((at+0.25)*1e9))
	return b.String()
}

func learns(n int) string { return fmt.Sprint(3 / float64(n)) }

func TestTimes(t *testing.T) {
	const steps = 41
	r, err := New().Parse("main", workloadtest.Fill(t, New(), param.Values{"steps": "41"}), strings.NewReader(printed(steps, 128, learns)))
	if err != nil {
		t.Fatal(err)
	}
	// From the end of the first step to that of the last: 39 of 20 ms, one of 100 ms.
	between := 39*0.02 + 0.1
	first := 3 + 1.01
	for name, want := range map[string]float64{
		"time": first + between + 0.25, "import_time": 2.5, "step_time": 0.01, "step_rate": 40 / between,
	} {
		i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name && s.Labels == "" })
		if i < 0 || math.Abs(r.Samples[i].Value-want) > 1e-6 {
			t.Errorf("%s: %+v, want %g", name, r.Samples, want)
		}
	}
	s := r.Series[0]
	if len(s.T) != steps-1 || len(s.V) != steps-1 || (s.T[0]-time.Duration((first+0.02)*1e9)).Abs() > time.Millisecond || s.V[steps-2] != 0.09 {
		t.Errorf("series %+v: want one point for each step but the first", s)
	}
}

func TestRefused(t *testing.T) {
	good := printed(40, 128, learns)
	for _, c := range []struct{ name, text, want string }{
		{"does not learn", printed(40, 128, func(int) string { return "2.1" }), "did not learn"},
		{"learns too little", printed(40, 128, func(n int) string { return fmt.Sprint(2.2 - float64(n)*0.003) }), "did not learn"},
		{"falls to guessing", printed(40, 128, func(n int) string { return fmt.Sprint(2.35 + 3/float64(n*n)) }), "did not learn"},
		{"grows", printed(40, 128, func(n int) string { return fmt.Sprint(n) }), "did not learn"},
		{"is not a number", printed(40, 128, func(int) string { return "NaN" }), "is not a number"},
		{"endless", printed(40, 128, func(int) string { return "Infinity" }), "is not a number"},
		{"negative", printed(40, 128, func(int) string { return "-1" }), "negative figure"},
		{"too few steps", printed(39, 128, learns), "39 steps of 128 pictures"},
		{"other pictures", printed(40, 64, learns), "of 64 pictures"},
		{"a step is missing", strings.Replace(good, `"n": 7,`, `"n": 8,`, 1), "step 6 is followed by step 8"},
		{"not loaded", strings.Replace(good, `"imported"`, `"else"`, 1), "TensorFlow was loaded"},
		{"no end", strings.Replace(good, `"end"`, `"else"`, 1), "after 40 of 40 steps"},
		{"killed", good[:len(good)/2], "lacks the line with the time"},
		{"damaged", strings.Replace(good, `"loss": 3}`, `"loss": 3`, 1), "damaged"},
		{"back in time", strings.Replace(good, `"at": 4.030000`, `"at": 3.030000`, 1), "out of order"},
	} {
		if _, err := New().Parse("main", workloadtest.Fill(t, New(), param.Values{"steps": "40"}), strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
	if _, err := New().Parse("main", workloadtest.Fill(t, New(), param.Values{"steps": "40"}), strings.NewReader(good)); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

// TestCommand: the parameters reach the script, which really takes them.
func TestCommand(t *testing.T) {
	roles, err := New().Roles(workloadtest.Fill(t, New(), param.Values{"steps": "50", "batch": "64", "threads": "3", "caches": "cold"}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(roles[0].Args[3:], " "), "python3 -B /app/train.py --steps 50 --batch 64 --threads 3"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	if !roles[0].DropCaches || roles[0].Image != "tensorflow" {
		t.Errorf("role %+v", roles[0])
	}
	script, err := os.ReadFile("../../images/tensorflow/train.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"--steps"`, `"--batch"`, `"--threads"`, fmt.Sprintf("CLASSES, SIDE, SEED = %d,", classes)} {
		if !strings.Contains(string(script), want) {
			t.Errorf("train.py has no %s", want)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(timedtest.Main(m.Run)) }

// TestReal trains the real network for the fewest steps. Its first run on a host
// fetches 300 MB and takes a minute; later ones take ten seconds.
func TestReal(t *testing.T) {
	timedtest.Run(t, New(), param.Values{"steps": "20", "batch": "32"}, func(t *testing.T, r record.Reading) {
		value := map[string]float64{}
		for _, s := range r.Samples {
			value[s.Name] = s.Value
		}
		if parts := value["import_time"] + value["first_step"] + 19/value["step_rate"]; parts > value["time"] || parts < value["time"]/3 {
			t.Errorf("import, first step and others take %g s of %g", parts, value["time"])
		}
	})
}
