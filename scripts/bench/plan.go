package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// plan measures the planner alone and the verb `tare plan` as a user calls it.
func (b *bench) plan(ctx context.Context) ([]row, error) {
	n := b.wants(6)
	pure, err := b.goBench(ctx, "./plan", "BenchmarkPlan100k", "ns/op", 3, n)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.work, "big.yaml")
	if err := os.WriteFile(file, bigStudy(), 0o600); err != nil {
		return nil, err
	}
	var verb []float64
	for range n {
		u, err := b.used(ctx, nil, "plan", "--no-check", file)
		if err != nil {
			return nil, err
		}
		verb = append(verb, u.seconds)
	}
	return []row{
		row{Figure: "plan of 100,000 cells: ordering and following one pass", Unit: "s", Tare: median(pure) / 1e9, Rounds: n}.below(1),
		row{Figure: "`tare plan` of 100,000 cells: the whole call, study file to printed plan", Unit: "s", Tare: median(verb), Rounds: n}.below(1),
	}, nil
}

// bigStudy has 5 x 100 x 200 cells.
func bigStudy() []byte {
	list := func(n int, unit string) string {
		var words []string
		for i := range n {
			words = append(words, strconv.Itoa(i+1)+unit)
		}
		return "[" + strings.Join(words, ", ") + "]"
	}
	return fmt.Appendf(nil, `study: big
baseline: process
factors:
  sandbox: [process, runc, crun, runsc-systrap, runsc-ptrace]
workloads:
  rr: {kind: net, mode: rr, connections: %s, size: %s}
`, list(100, ""), list(200, "B"))
}

// goBench runs one Go benchmark of the source n times, with the given number of loops each, and returns its
// values in a unit.
func (b *bench) goBench(ctx context.Context, pkg, name, unit string, loops, n int) ([]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+name+"$", "-benchtime", strconv.Itoa(loops)+"x", "-count", strconv.Itoa(n), pkg) //nolint:gosec // fixed names
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench %s: %w: %s", name, err, tail(out))
	}
	v := parseGoBench(string(out), name, unit)
	if len(v) != n {
		return nil, fmt.Errorf("go test -bench %s gave %d results, %d were asked for: %s", name, len(v), n, tail(out))
	}
	return v, nil
}

// parseGoBench finds the values of a unit:
//
//	BenchmarkPlan100k-2   7   161591070 ns/op
func parseGoBench(out, name, unit string) []float64 {
	var v []float64
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != name && !strings.HasPrefix(f[0], name+"-") {
			continue
		}
		for i := 2; i+1 < len(f); i += 2 {
			if x, err := strconv.ParseFloat(f[i], 64); err == nil && f[i+1] == unit {
				v = append(v, x)
			}
		}
	}
	return v
}

// tail is the end of what a tool printed.
func tail(b []byte) string {
	return strings.TrimSpace(string(b[max(0, len(b)-500):]))
}
