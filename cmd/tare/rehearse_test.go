package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/record"
	"tare/store"
)

const rehearsedStudy = `study: crash
seed: 7
factors: {sandbox: [process, runc, runsc-systrap, vm], isolate: [server], connections: [1, 4]}
workloads:
  rr: {kind: net, mode: rr, warmup: 100ms, duration: 100ms, responses: [rate]}
stop: {fixed: 8}
`

// TestKillRehearsal: a rehearsal that is killed at random moments comes to the trials,
// the order and the figures of one that is not.
func TestKillRehearsal(t *testing.T) {
	dir := t.TempDir()
	file, results, whole := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "results"), filepath.Join(dir, "whole")
	if err := os.WriteFile(file, []byte(rehearsedStudy), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("moments from seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	began := time.Now()
	tare(t, "run", file, "--on", "model", "-o", whole)
	took := time.Since(began)
	for range 4 {
		cmd := exec.Command(bin, "run", file, "--on", "model", "-o", results)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took/4 + time.Duration(r.Int64N(int64(took/2))))
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}
	if !store.Exists(results) {
		t.Log("every kill was before the first trial")
	}
	tare(t, "run", file, "--on", "model", "-o", results)
	if d := cmp.Diff(load(t, whole), load(t, results), cmpopts.IgnoreFields(record.Trial{}, "Start", "Session")); d != "" {
		t.Error(d)
	}
}
