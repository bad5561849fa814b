package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/sandbox"
)

// answer answers for the commands of noop, startup and density; its figures are
// invented from the trial and the role in the sandbox's name, and so the same in
// every rehearsal.
func answer(ctx context.Context, spec sandbox.Spec, c sandbox.Command, slowdown float64) (stdout, stderr string, exit sandbox.Exit, err error) {
	switch {
	case len(c.Args) == 1 && filepath.Base(c.Args[0]) == "tare-hello":
		return "x\n", "", exit, nil
	case len(c.Args) == 1 && filepath.Base(c.Args[0]) == "tare-pause":
		if c.Stdout != nil {
			_, _ = io.WriteString(c.Stdout, "x\n") // before it sleeps, not with its end
		}
		<-ctx.Done()
		return "", "", sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil
	case len(c.Args) >= 3 && c.Args[1] == "internal" && c.Args[2] == "noop":
		stdout, err = noop(spec.Name, c.Args[3:], slowdown)
		return stdout, "", exit, err
	}
	return "", fmt.Sprintf("the sandbox fake runs nothing, it only answers for noop, startup and density; it cannot answer %q\n", c.Args), sandbox.Exit{Code: 127}, nil
}

// noop invents what `tare internal noop` prints: sleeps that last 55 us too
// long, give or take 5 % from trial to trial and 10 % within one.
func noop(name string, args []string, slowdown float64) (string, error) {
	sleeps, sleep := 100, time.Millisecond
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--sleeps="); ok {
			if n, err := strconv.Atoi(v); err == nil && n >= 0 && n <= 10000 {
				sleeps = n
			}
		}
		if v, ok := strings.CutPrefix(a, "--sleep="); ok {
			if d, err := time.ParseDuration(v); err == nil && d >= 0 {
				sleep = d
			}
		}
	}
	// Names are RUN-TRIAL-ROLE, and every run is another.
	if _, trial, ok := strings.Cut(name, "-"); ok {
		name = trial
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                  // a hash does not fail
	r := rand.New(rand.NewPCG(h.Sum64(), 0x7a7e)) //nolint:gosec // invented figures must repeat
	base := 55e3 * slowdown * (1 + 0.05*r.NormFloat64())
	report := struct {
		Sleep     int64   `json:"sleep_ns"`
		Overshoot []int64 `json:"overshoot_ns"`
		Elapsed   int64   `json:"elapsed_ns"`
		CPU       int64   `json:"cpu_ns"`
	}{Sleep: sleep.Nanoseconds(), Overshoot: make([]int64, sleeps), CPU: int64(2e6 * slowdown)}
	for i := range report.Overshoot {
		report.Overshoot[i] = int64(max(1, base*(1+0.1*r.NormFloat64())))
		report.Elapsed += report.Sleep + report.Overshoot[i]
	}
	b, err := json.Marshal(report)
	return string(b) + "\n", err
}
