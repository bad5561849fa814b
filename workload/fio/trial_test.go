package fio

import (
	"os"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/run"
	"tare/run/trialtest"
)

func TestMain(m *testing.M) { os.Exit(trialtest.Main(m.Run, nil)) }

// TestWindow: the measured window of a trial is fio's own, whether its files are
// laid out for it or by it. With a guess of the layout's time in the warm-up, the
// window opened after fio had ended, or while it still wrote what it was to read.
func TestWindow(t *testing.T) {
	const duration, warmup = 500 * time.Millisecond, 100 * time.Millisecond
	v := param.Values{"size": "128MiB", "duration": duration.String(), "warmup": warmup.String()}
	b := trialtest.New(t, New(), v)
	for _, rw := range []string{"randread", "randwrite"} {
		t.Run(rw, func(t *testing.T) {
			v["rw"] = rw
			b.Each(t, v, "", func(t *testing.T, tr *record.Trial) {
				phases := map[string]time.Duration{}
				for _, p := range tr.Phases {
					phases[p.Name] = p.Duration
				}
				// fio starts before its ramp does, so that a window that opens by the
				// ramp's length is never the shorter one; and it takes a while to start.
				if got := phases[run.PhaseRun]; got < duration*9/10 || got > duration+5*time.Second {
					t.Errorf("the measured window is %v, fio measured %v", got, duration)
				}
				if _, laid := phases[run.PhaseLayOut]; laid != (rw == "randread") {
					t.Errorf("phases %v: only what is read is laid out before", phases)
				}
			})
		})
	}
}
