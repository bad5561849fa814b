package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/store"
)

// TestCompareGate plants a regression of 10 % in one cell of 25, goes through
// results folders, and wants it named, once, with exit code 6.
func TestCompareGate(t *testing.T) {
	dir := t.TempDir()
	var study strings.Builder
	study.WriteString("study: gated\nbaseline: \"1\"\ncompare: slowdown\nfactors:\n  sandbox: [fake]\n  slowdown: [1, 2, 3, 4, 5]\nstop: {fixed: 8}\nworkloads:\n")
	for w := range 5 {
		fmt.Fprintf(&study, "  w%d: {kind: noop, sleeps: 5, responses: [elapsed]}\n", w)
	}
	r := rand.New(rand.NewPCG(1, 2))
	write := func(name, kernel string, slower float64) string {
		path := filepath.Join(dir, name)
		db, err := store.Create(path, store.Meta{StudySource: []byte(study.String()), StudyFile: "gated.yaml", TareVersion: "1",
			Host: record.Host{Hostname: "lab", Kernel: kernel}, Started: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		seq := 0
		for block := range 8 {
			for w := range 5 {
				for s := range 5 {
					v := float64(s+1) * math.Exp(0.01*r.NormFloat64())
					if w == 3 && s == 2 {
						v *= slower
					}
					seq++
					if err := db.Append(context.Background(), &record.Trial{Seq: seq, Block: block + 1, Attempt: 1, Status: record.OK, Start: time.Unix(1, 0),
						Cell:    record.Cell{{Factor: "workload", Value: fmt.Sprintf("w%d", w)}, {Factor: "sandbox", Value: "fake"}, {Factor: "slowdown", Value: fmt.Sprint(s + 1)}},
						Samples: []record.Sample{{Name: "elapsed", Unit: record.Second, Value: v}}}, record.Evidence{}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("a", "6.1", 1), write("b", "6.2", 1.1)
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := execute(t.Context(), &out, &errs, append([]string{"compare"}, args...))
		return code, out.String(), errs.String()
	}
	const culprit = "workload=w3,sandbox=fake,slowdown=3 elapsed: cost 1.1"
	code, out, errs := run(a, b, "--gate", "worse than 5%")
	if code != exitGate || strings.Count(out, culprit) != 1 || !strings.Contains(errs, "1 of 25 rows breaks a gate") || !strings.Contains(out, "kernel: 6.1 -> 6.2") {
		t.Errorf("exit %d, want %d\n%s%s", code, exitGate, out, errs)
	}
	if code, out, _ := run(b, a, "--gate", "worse than 5%"); code != exitOK || !strings.Contains(out, "1 changed") || !strings.Contains(out, "▲") {
		t.Errorf("the other way round it got better: exit %d\n%s", code, out)
	}
	if code, out, _ := run(a, b, "--gate", "worse than 5%", "--only", "workload=w1,workload=w2"); code != exitOK {
		t.Errorf("where nothing is planted: exit %d\n%s", code, out)
	}
	if code, _, errs := run(a, b, "--csv", "--gate", "surely worse than 5%"); code != exitGate || !strings.Contains(errs, culprit) {
		t.Errorf("exit %d: %s", code, errs)
	}
}
