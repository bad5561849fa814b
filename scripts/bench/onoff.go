package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tare/record"
)

// onOffStudy is one block of three short workloads. The two ends of the round
// trips are on one processor, or one would measure where the scheduler puts them
// (see net.go); the other two go where it likes.
//
//go:embed studies/on-off.yaml
var onOffStudy string

// onOffRounds is enough for an interval of a few percent on a machine whose
// trials vary by ten.
const onOffRounds = 30

// onOff runs the same small study with all collectors and without collectors, in turn,
// each time by the built tare, and compares the responses of each round.
func (b *bench) onOff(ctx context.Context) ([]row, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root; run it with sudo")
	}
	names := []string{"getpid", "rr", "stream"}
	rows := map[string]row{
		"getpid": {Figure: "getpid, collectors on and off", Unit: string(record.Second)},
		"rr":     {Figure: "TCP round trips of 1 B, collectors on and off", Unit: string(record.PerSecond)},
		"stream": {Figure: "TCP stream of 64 KiB, collectors on and off", Unit: string(record.BytesPerSecond)},
	}
	pairs := map[string][]pair{}
	studies := map[string]string{"on": "[proc, cgroup, system]", "off": "[]"}
	for side, use := range studies {
		studies[side] = filepath.Join(b.work, "collectors-"+side+".yaml")
		if err := os.WriteFile(studies[side], fmt.Appendf(nil, onOffStudy, use), 0o600); err != nil {
			return nil, err
		}
	}
	for i := range b.wants(onOffRounds) {
		got := map[string]map[string]float64{}
		for _, side := range [][]string{{"on", "off"}, {"off", "on"}}[i%2] {
			var err error
			if got[side], err = b.first(ctx, studies[side]); err != nil {
				return nil, fmt.Errorf("collectors %s: %w", side, err)
			}
		}
		for _, name := range names {
			pairs[name] = append(pairs[name], pair{got["on"][name], got["off"][name]})
		}
	}
	out := make([]row, 0, len(names)+1)
	for _, name := range names {
		out = append(out, rows[name].beside("ratio", "off", pairs[name]).equal(0.01))
	}
	out[0].Note = "the study runs once with collectors proc, cgroup and system at 10 Hz and once without, in turn; undecided asks for a quieter machine or more -rounds"
	return out, nil
}

// first runs a study of one block afresh and returns the first response of each
// workload. The study takes the host's lock itself.
func (b *bench) first(ctx context.Context, study string) (map[string]float64, error) {
	dir, err := os.MkdirTemp(b.work, "block-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := b.used(ctx, nil, "run", study, "--wait", "--fresh", "-o", filepath.Join(dir, "results")); err != nil {
		return nil, err
	}
	return responsesOf(filepath.Join(dir, "results"), "process", map[string]string{"getpid": "time_per_call", "rr": "rate", "stream": "throughput"})
}
