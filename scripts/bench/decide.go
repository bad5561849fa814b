package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/perf/benchmath"

	"tare/analyse/stat"
	"tare/host/rootfs"
)

// byHand is the number of runs of each that a person makes before asking benchstat.
const byHand = 10

// loop returns a program that takes some milliseconds, longer by the given per cent.
func loop(more int) string {
	return fmt.Sprintf("busybox awk 'BEGIN{for(i=0;i<%d;i++)x+=i}'", 1000*(100+more))
}

// decide measures how long it takes to detect that a program is 10 % slower. It compares a study that
// ends by its own rule with two other ways: hyperfine's defaults, which stop after three seconds or ten
// runs of each, and benchstat on ten runs of each. The note says which of them detect it.
func (b *bench) decide(ctx context.Context) ([]row, error) {
	hyperfine, ok := rootfs.Lookup("hyperfine")
	if !ok {
		return nil, errors.New("hyperfine is not installed; apt-get install hyperfine")
	}
	study := filepath.Join(b.work, "decide.yaml")
	text := fmt.Sprintf("study: decide\ncompare: command\nbaseline: %[1]q\nfactors: {sandbox: [process]}\nworkloads:\n  loop: {kind: command, command: [%[1]q, %[2]q], fill: 100ms, responses: [wall]}\n"+
		"turns: 2\nsentinel: off\nstop: {width: 3%%, margin: 3%%}\nbudget: {time: 60s}\n", loop(0), loop(10))
	if err := os.WriteFile(study, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var usual, hand []pair
	var calls [3]int
	n := b.wants(6)
	for i := range n {
		var took [3]float64
		for j := range took {
			k := (i + j) % len(took) // each goes first in turn
			var found bool
			var err error
			switch k {
			case 0:
				took[k], found, err = b.decided(ctx, study, filepath.Join(b.work, "decide"+strconv.Itoa(i)))
			case 1:
				took[k], found, err = b.timed(ctx, hyperfine)
			case 2:
				took[k], found, err = b.timed(ctx, hyperfine, "--runs", strconv.Itoa(byHand))
			}
			if err != nil {
				return nil, err
			}
			if found {
				calls[k]++
			}
		}
		usual, hand = append(usual, pair{took[0], took[1]}), append(hand, pair{took[0], took[2]})
	}
	const figure = "a slowdown of 10 %: the whole time until it is decided"
	r := row{Figure: figure, Unit: "s"}.beside("ratio", "hyperfine", usual)
	r.Note = fmt.Sprintf("called slower in %d of %d rounds, hyperfine's runs in %d, those by hand in %d (U test of benchstat at 5 %%)", calls[0], n, calls[1], calls[2])
	return []row{r, row{Figure: figure, Unit: "s"}.beside("ratio", "10 + 10 runs by hand", hand)}, nil
}

// decided returns how long a run of the study takes, and whether it calls the second command slower.
func (b *bench) decided(ctx context.Context, study, dir string) (seconds float64, slower bool, err error) {
	u, err := b.used(ctx, nil, "run", study, "--wait", "--results", dir)
	if err != nil {
		return 0, false, err
	}
	out, err := exec.CommandContext(ctx, b.tare, "report", dir, "--json").Output() //nolint:gosec // the binary under test
	if err != nil {
		return 0, false, fmt.Errorf("tare report --json: %w", err)
	}
	var r struct {
		Comparisons []struct{ Verdict stat.Verdict }
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return 0, false, err
	}
	for _, c := range r.Comparisons {
		slower = slower || c.Verdict == stat.Slower
	}
	return u.seconds, slower, nil
}

// timed returns how long hyperfine takes for both commands, and whether benchstat calls its runs
// different.
func (b *bench) timed(ctx context.Context, hyperfine string, options ...string) (seconds float64, slower bool, err error) {
	file := filepath.Join(b.work, "hyperfine.json")
	begun := time.Now()
	cmd := exec.CommandContext(ctx, hyperfine, append(options, "-N", "--style", "none", "--export-json", file, loop(0), loop(10))...) //nolint:gosec // the peer
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, false, fmt.Errorf("hyperfine: %w: %s", err, tail(out))
	}
	seconds = time.Since(begun).Seconds()
	text, err := os.ReadFile(file) //nolint:gosec // our own file
	if err != nil {
		return 0, false, err
	}
	var out struct {
		Results []struct {
			Times []float64 `json:"times"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &out); err != nil || len(out.Results) != 2 {
		return 0, false, fmt.Errorf("hyperfine's JSON has %d results: %w", len(out.Results), err)
	}
	of := func(i int) *benchmath.Sample {
		return benchmath.NewSample(out.Results[i].Times, &benchmath.DefaultThresholds)
	}
	c := benchmath.AssumeNothing.Compare(of(0), of(1))
	return seconds, c.P < 0.05 && median(out.Results[1].Times) > median(out.Results[0].Times), nil
}
