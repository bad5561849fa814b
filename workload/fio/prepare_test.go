package fio

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
)

// TestSteady: SNIA's rule, by hand: the range within a fifth of the mean, and the line through
// five rounds within a tenth of it.
func TestSteady(t *testing.T) {
	for _, c := range []struct {
		rounds []float64
		want   bool
	}{
		{nil, false},
		{[]float64{100, 100, 100, 100}, false},
		{[]float64{100, 100, 100, 100, 100}, true},
		{[]float64{900, 500, 100, 101, 99, 100, 100}, true},
		{[]float64{109, 91, 109, 91, 109}, true},        // 18 %, no slope
		{[]float64{111, 89, 100, 111, 89}, false},       // 22 %
		{[]float64{95, 97.5, 100, 102.5, 105}, true},    // 10 %, rising by 10 %
		{[]float64{94.5, 97, 100, 103, 105.5}, false},   // rising by 11.2 %
		{[]float64{105, 103.5, 100, 96.5, 94.5}, false}, // falling
		{[]float64{0, 0, 0, 0, 0}, false},
	} {
		if got := steady(c.rounds); got != c.want {
			t.Errorf("%v: %t", c.rounds, got)
		}
	}
}

// steps are the names of what a role does before.
func steps(t *testing.T, v param.Values) (names []string, p preparation, err error) {
	t.Helper()
	v, err = param.Fill(New().Params(), v)
	if err != nil {
		return nil, p, err
	}
	roles, err := New().Roles(v)
	if err != nil {
		return nil, p, err
	}
	b := roles[0].Before
	if len(b) == 4 && b[2] == "fio" {
		if err := json.Unmarshal([]byte(b[3]), &p); err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			names = append(names, s.Name)
		}
	} else if len(b) > 0 {
		names = []string{"alone"}
	}
	return names, p, nil
}

func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		v    param.Values
		want string // or a part of the error
	}{
		{nil, "alone"},
		{param.Values{"rw": "write"}, ""},
		{param.Values{"rw": "write", "prepare": "fill"}, "fill"},
		{param.Values{"prepare": "precondition"}, "fill precondition warm"},
		{param.Values{"prepare": "fill precondition", "cache": "direct"}, "fill precondition"},
		{param.Values{"prepare": "trim fill precondition", "target": "block"}, "trim fill precondition"},
		{param.Values{"prepare": "trim", "target": "block", "rw": "randwrite"}, "trim"},
		{param.Values{"prepare": "trim", "target": "block"}, "trim fill"},
		{param.Values{"free": "50"}, "fill"},
		{param.Values{"free": "50", "rw": "randwrite"}, ""},
		{param.Values{"prepare": "fill", "jobfile": "[a]\nsize=1m\n"}, "fill"},
		{param.Values{"prepare": "trim"}, "needs a device"},
		{param.Values{"prepare": "fill trim"}, "go in the order trim, fill, precondition, each once; write prepare: trim fill"},
		{param.Values{"prepare": "fill fill"}, "write prepare: fill"},
		{param.Values{"prepare": "format"}, "is not a step"},
		{param.Values{"prepare": "precondition", "jobfile": "[a]\nsize=1m\n"}, "does not know the job file's files"},
		{param.Values{"free": "50", "target": "block"}, "has no meaning"},
		{param.Values{"free": "95"}, "from 0 to 90"},
	} {
		names, _, err := steps(t, c.v)
		if got := strings.Join(names, " "); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %q, %v; want %q", c.v, got, err, c.want)
		}
	}
}

// TestPrepareHere makes the steps with the installed fio in a directory, and reads the notes.
func TestPrepareHere(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed")
	}
	dir := t.TempDir()
	v := param.Values{"prepare": "fill precondition", "size": "256KiB", "duration": "100ms", "rw": "randwrite"}
	names, p, err := steps(t, v)
	if err != nil {
		t.Fatal(names, err)
	}
	for i := range p.Steps {
		for j, a := range p.Steps[i].Args {
			p.Steps[i].Args[j] = strings.ReplaceAll(strings.ReplaceAll(a, "directory=/data", "directory="+dir), "/data", dir)
		}
	}
	var log, stderr bytes.Buffer
	if err := p.run(t.Context(), &log, &stderr); err != nil {
		t.Fatal(err, stderr.String())
	}
	var rd record.Reading
	readPrepared(&rd, log.Bytes())
	find := func(name string, labels record.Labels) float64 {
		i := slices.IndexFunc(rd.Samples, func(s record.Sample) bool { return s.Name == name && s.Labels == labels })
		if i < 0 {
			t.Fatalf("no %s in %+v", name, rd.Samples)
		}
		return rd.Samples[i].Value
	}
	if n := find("prepare_rounds", ""); n < window || n > mostRounds {
		t.Errorf("%v rounds", n)
	}
	if s := find("prepare_time", record.MakeLabels("step", stepPrecondition)); s < 0.5 {
		t.Errorf("%v s", s)
	}
	if st, err := os.Stat(filepath.Join(dir, "tare.0.0")); err != nil || st.Size() != 256<<10 {
		t.Errorf("%v, %v", st, err)
	}
	p.Steps[0].Args = []string{"sh", "-c", "echo no space left on device; exit 3"}
	if err := p.run(t.Context(), &log, &stderr); err == nil || !strings.Contains(err.Error(), "the step fill: exit status 3") || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("%v, %s", err, stderr.String())
	}
}

// TestFree: the files of all jobs have the share together.
func TestFree(t *testing.T) {
	p := preparation{Free: 10, Dir: t.TempDir(), Jobs: 4, BS: 1 << 20}
	size, err := p.size()
	if err != nil || size%p.BS != 0 || size < p.BS {
		t.Errorf("%d, %v", size, err)
	}
	p.Dir = "/proc"
	if _, err := p.size(); err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("%v", err)
	}
}
