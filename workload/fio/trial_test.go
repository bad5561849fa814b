package fio

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"tare/collect/calls"
	"tare/param"
	"tare/record"
	"tare/trial"
	"tare/trial/trialtest"
	"tare/workload"
)

func TestMain(m *testing.M) { os.Exit(trialtest.Main(m.Run, nil)) }

// TestWindow: the measured window of a trial is fio's own, whether its files are
// laid out for it or by it. With a guess of the layout's time in the warm-up, the
// window opened after fio had ended, or while it still wrote what it was to read.
func TestWindow(t *testing.T) {
	const duration, warmup = 500 * time.Millisecond, 100 * time.Millisecond
	v := param.Values{"size": "64MiB", "duration": duration.String(), "warmup": warmup.String()}
	b := trialtest.New(t, New(), v)
	for rw, kinds := range map[string][]string{"randread": trialtest.Kinds(), "randwrite": {trialtest.GVisor}} {
		t.Run(rw, func(t *testing.T) {
			v["rw"] = rw
			b.In(t, kinds, v, "", func(t *testing.T, tr *record.Trial) {
				phases := map[string]time.Duration{}
				for _, p := range tr.Phases {
					phases[p.Name] = p.Duration
				}
				// fio starts before its ramp does, so that a window that opens by the
				// ramp's length is never the shorter one; and it takes a while to start.
				if got := phases[trial.PhaseRun]; got < duration*9/10 || got > duration+5*time.Second {
					t.Errorf("the measured window is %v, fio measured %v", got, duration)
				}
				if _, laid := phases[trial.PhaseLayOut]; laid != (rw == "randread") {
					t.Errorf("phases %v: only what is read is laid out before", phases)
				}
			})
		})
	}
}

// resident is fio with another load: how much of its files is in the page cache when
// the load begins.
type resident struct{ workload.Workload }

func (resident) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "resident", Unit: record.Byte, Better: record.Higher}}
}

func (r resident) Roles(v param.Values) ([]workload.Role, error) {
	roles, err := r.Workload.Roles(v)
	if err != nil {
		return nil, err
	}
	roles[0].Args = []string{"sh", "-c", `fincore --bytes --noheadings --output RES "$1"/tare.*.*`, "sh", directory(v)}
	roles[0].Needs, roles[0].Until = append(roles[0].Needs, "fincore"), ""
	return roles, nil
}

func (resident) Parse(_ string, _ param.Values, out io.Reader) (record.Reading, error) {
	sum := 0.0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var n float64
		if _, err := fmt.Sscan(lines.Text(), &n); err != nil {
			return record.Reading{}, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		sum += n
	}
	return record.Reading{Samples: []record.Sample{{Name: "resident", Unit: record.Byte, Kind: record.Value, Value: sum}}}, nil
}

// TestResident: what is to be warm is in the page cache before the load, all of it and
// wherever it is; what is to be cold is not. fio drops what it has laid out.
func TestResident(t *testing.T) {
	const size, jobs = 4 << 20, 2
	b := trialtest.New(t, resident{New()}, nil)
	for _, c := range []struct {
		target, cache string
		want          float64
	}{
		{"data", "warm", jobs * size},
		{"root", "warm", jobs * size},
		{"bind", "warm", jobs * size},
		{"tmpfs", "warm", jobs * size},
		{"data", "dropped", 0},
		{"root", "dropped", 0},
	} {
		t.Run(c.target+" "+c.cache, func(t *testing.T) {
			tr := b.Trial(t, param.Values{"target": c.target, "cache": c.cache, "size": "4MiB", "jobs": "2"}, "process", "")
			if tr.Status != record.OK {
				t.Fatalf("%+v", tr.Failure)
			}
			for _, w := range tr.Warnings {
				if w.Code == "caches-kept" {
					t.Skip(w.Text)
				}
			}
			if got, ok := tr.Sample("resident"); !ok || got != c.want {
				t.Errorf("%v bytes are in the page cache, want %v", got, c.want)
			}
		})
	}
}

// TestCounted: the calls that are counted are those of the requests. fio's start-up
// makes more of them than a short load does, and others.
func TestCounted(t *testing.T) {
	by := calls.New()
	if err := by.Check(); err != nil {
		t.Skip(err)
	}
	b := trialtest.New(t, New(), nil)
	for _, c := range []struct {
		name string
		v    param.Values
		want map[string]float64 // calls of a request
	}{
		{"cold, in order", param.Values{"rw": "read", "bs": "1MiB", "size": "16MiB", "cache": "dropped", "engine": "sync"}, map[string]float64{"read": 1}},
		{"cold, at random", param.Values{"rw": "randread", "size": "16MiB", "cache": "dropped", "engine": "sync"}, map[string]float64{"read": 1, "lseek": 1}},
		{"written", param.Values{"rw": "write", "bs": "1MiB", "size": "16MiB", "engine": "sync"}, map[string]float64{"write": 1}},
		{"warm", param.Values{"rw": "randread", "size": "16MiB"}, map[string]float64{"pread64": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.v["duration"], c.v["warmup"] = "500ms", "0s"
			// The two windows differ where the host is busy just then: one trial in several
			// must be right, and a wrong count is wrong in all of them.
			var wrong []string
			for range 4 {
				tr := b.Counted(t, c.v, by)
				if tr.Status != record.OK {
					t.Fatalf("%+v", tr.Failure)
				}
				if got := tr.Cell.String(); !strings.Contains(got, "counting") {
					t.Errorf("the cell is %s", got)
				}
				if wrong = miscounted(tr, c.want); len(wrong) == 0 {
					return
				}
			}
			t.Errorf("in each of four trials; in the last: %s", strings.Join(wrong, "; "))
		})
	}
}

// miscounted says which calls of a request are not as many as wanted.
func miscounted(tr *record.Trial, want map[string]float64) (wrong []string) {
	iops, _ := tr.Sample("iops")
	others, seen := 0.0, 0
	for _, s := range tr.Samples {
		if s.Name != record.SystemCalls+record.RateSuffix {
			continue
		}
		name, each := s.Labels.Get(record.LabelCall), s.Value/iops
		w, ok := want[name]
		if !ok {
			others += each
			continue
		}
		seen++
		if each < 0.8*w || each > 1.2*w {
			wrong = append(wrong, fmt.Sprintf("%.3f calls of %s a request, want %g", each, name, w))
		}
	}
	if others > 0.5 || seen < len(want) {
		wrong = append(wrong, fmt.Sprintf("%.3f other calls a request, %d of %d calls seen", others, seen, len(want)))
	}
	return wrong
}
