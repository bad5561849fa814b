package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// truthTrials is how many configurations are drawn.
const truthTrials = 1000

var (
	truthLine = regexp.MustCompile(`(\d+) configurations, ([0-9.]+) % right, ([0-9.]+) % wrong`)
	truthSeed = regexp.MustCompile(`TARE_SEED=(\d+)`)
	truthGrid = regexp.MustCompile(`(?s)planted .*?\n *confidence, [^\n]*\n`)
)

// truth asks for the cause of cells of the model that have one planted bottleneck
// each, drawn afresh, and counts the right and the wrong names. The table of who was
// taken for what goes to standard error.
func (b *bench) truth(ctx context.Context) ([]row, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=60m", "-run", "^TestTruth$", "-v", "./model")
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "TARE_TRUTH="+strconv.Itoa(truthTrials))
	out, failed := cmd.CombinedOutput()
	t, err := parseTruth(string(out))
	if err != nil { // where the figures are there, the test fails by what they say
		return nil, fmt.Errorf("go test ./model: %w: %w: %s", failed, err, tail(out))
	}
	_, _ = fmt.Fprintf(b.stderr, "bench: TARE_SEED=%s: %s", t.seed, t.grid)
	what := fmt.Sprintf("of %d random configurations of the model with one planted bottleneck: the cause is named", t.n)
	return []row{
		row{Figure: what + " otherwise, or not told", Unit: "%", Tare: 100 - t.right, Rounds: 1}.below(5),
		row{Figure: what + " wrong", Unit: "%", Tare: t.wrong, Rounds: 1}.below(2),
		{Figure: what, Note: "TARE_SEED=" + t.seed + " draws these again"},
	}, nil
}

// truthResult is what the test says; shares in per cent.
type truthResult struct {
	n            int
	right, wrong float64
	seed, grid   string
}

func parseTruth(out string) (t truthResult, err error) {
	g, seed := truthLine.FindStringSubmatch(out), truthSeed.FindStringSubmatch(out)
	if g == nil || seed == nil {
		return t, errors.New("it says no shares")
	}
	t.seed, t.grid = seed[1], truthGrid.FindString(out)
	if t.n, err = strconv.Atoi(g[1]); err == nil {
		t.right, err = strconv.ParseFloat(g[2], 64)
	}
	if err == nil {
		t.wrong, err = strconv.ParseFloat(g[3], 64)
	}
	return t, err
}
