package main

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"tare/record"
	"tare/store"
)

// suiteStudy is every benchmark of the gVisor guide in every sandbox.
const suiteStudy = "studies/gvisor-guide-small.yaml"

// suite runs one block of the whole suite and reads tare's peak memory, as
// memory does. Images that are not in the cache are built in it.
func (b *bench) suite(ctx context.Context) ([]row, error) {
	dir := filepath.Join(b.work, "suite")
	u, err := b.block(ctx, filepath.Join(b.root, suiteStudy), dir)
	if err != nil {
		return nil, err
	}
	trials, err := trialsOf(dir)
	if err != nil {
		return nil, err
	}
	r := row{Figure: "peak memory of tare during one block of the whole suite, " + filepath.Base(suiteStudy), Unit: "B", Tare: u.peak}.below(150e6)
	r.Note = fmt.Sprintf("VmHWM of the tare process alone, over %d trials in %.0f s", len(trials), u.seconds)
	return []row{r}, nil
}

// harnessStudy does nothing for six seconds in each trial, with all collectors at the
// usual rate.
//
//go:embed studies/harness.yaml
var harnessStudy string

// edge is left out at both ends of a trial's run: starting and stopping are no
// part of what a measurement suffers from.
const edge = 250 * time.Millisecond

// moment is what the tare process had used of the processors at a time.
type moment struct {
	at  time.Time
	cpu time.Duration
}

// harness is what the tare process takes of a processor while a trial that does
// nothing runs: its CPU clock (clock_getcpuclockid(3)) read every 50 ms, held
// against each trial's run phase. Beside it what its collectors say of themselves.
func (b *bench) harness(ctx context.Context) ([]row, error) {
	var moments []moment
	trials, _, err := b.small(ctx, "harness", harnessStudy, func(pid int) {
		if cpu, err := processCPU(pid); err == nil {
			moments = append(moments, moment{time.Now(), cpu})
		}
	})
	if err != nil {
		return nil, err
	}
	all, own := map[string][]float64{}, map[string][]float64{}
	for i := range trials {
		t := &trials[i]
		sandbox, _ := t.Cell.Get("sandbox")
		if t.Status != record.OK {
			continue
		}
		share, err := during(moments, t)
		if err != nil {
			return nil, err
		}
		all[sandbox], own[sandbox] = append(all[sandbox], share), append(own[sandbox], collectors(t))
	}
	var rows []row
	for _, sandbox := range []string{"process", "runc", "runsc-systrap"} {
		r := row{Figure: "CPU of tare during a trial that does nothing, " + sandbox, Unit: string(record.Cores)}
		if len(all[sandbox]) == 0 {
			r.Note = "not measured: no trial of it went well; tare doctor says what this host lacks"
		} else {
			r.Tare, r.Rounds = median(all[sandbox]), len(all[sandbox])
			r = r.below(0.01)
			r.Note = fmt.Sprintf("of it the collectors, by their own account: %.3g %% of a core", 100*median(own[sandbox]))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// during is the share of a core that was used in the trial's run phase.
func during(moments []moment, t *record.Trial) (float64, error) {
	for _, p := range t.Phases {
		if p.Name != "run" {
			continue
		}
		from, to := t.Start.Add(p.Offset+edge), t.Start.Add(p.Offset+p.Duration-edge)
		var first, last *moment
		for i := range moments {
			if m := &moments[i]; m.at.After(from) && m.at.Before(to) {
				if first == nil {
					first = m
				}
				last = m
			}
		}
		if first == nil || last.at.Sub(first.at) < time.Second {
			return 0, fmt.Errorf("trial %d: its run phase of %v was not seen", t.Seq, p.Duration)
		}
		return (last.cpu - first.cpu).Seconds() / last.at.Sub(first.at).Seconds(), nil
	}
	return 0, fmt.Errorf("trial %d has no run phase", t.Seq)
}

// collectors is what all collectors say that they took, in cores.
func collectors(t *record.Trial) (sum float64) {
	for _, s := range t.Samples {
		if s.Name == "collector_cpu_rate" {
			sum += s.Value
		}
	}
	return sum
}

// processCPU is the CPU time of all threads of a process: the clock whose id the
// kernel makes of the process's (clock_getcpuclockid(3), CPUCLOCK_SCHED).
func processCPU(pid int) (time.Duration, error) {
	const sched = 2
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|sched, &ts) //nolint:gosec // process ids are below 2^22
	return time.Duration(ts.Nano()), err
}

// trialsOf reads the trials of a results folder.
func trialsOf(dir string) ([]record.Trial, error) {
	s, err := store.OpenReadOnly(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	return s.Trials()
}
