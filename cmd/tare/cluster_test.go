package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/store"
	"tare/study"
)

// onLab is a cluster of `make lab`, with this tare's image on its nodes.
type onLab struct{ kubeconfig, image string }

// theLab skips the test if no such cluster runs.
func theLab(t *testing.T) onLab {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := onLab{kubeconfig: filepath.Join(root, ".cache/lab/run/kubeconfig"), image: "localhost/tare/tare:latest"}
	if _, err := os.Stat(l.kubeconfig); err != nil {
		t.Skip("no cluster of `make lab` runs")
	}
	if testing.Short() {
		t.Skip("runs pods for a minute")
	}
	dir := t.TempDir()
	for _, c := range [][]string{
		{bin, "image", "export", "tare", filepath.Join(dir, "layout")},
		{"tar", "-C", filepath.Join(dir, "layout"), "-cf", filepath.Join(dir, "tare.tar"), "."},
		{"go", "run", "./scripts/lab", "load", filepath.Join(dir, "tare.tar")},
	} {
		cmd := exec.CommandContext(t.Context(), c[0], c[1:]...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(c, " "), err, out)
		}
	}
	return l
}

func (l onLab) tare(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--on", "k8s", "--kubeconfig", l.kubeconfig)
	if args[0] == "run" {
		args = append(args, "--image", l.image)
	}
	return exec.CommandContext(ctx, bin, args...)
}

// TestOnCluster: a study runs in pods of each class on two nodes, a killed one goes on where it
// stopped, and nothing of either stays on the cluster.
func TestOnCluster(t *testing.T) {
	l := theLab(t)
	dir := t.TempDir()
	file, results := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "r")
	err := os.WriteFile(file, []byte(`study: pods
seed: 1
baseline: process
factors: {sandbox: [process, runc, gvisor]}
workloads:
  calls: {kind: syscall, call: getpid, duration: 300ms, warmup: 100ms}
  rr: {kind: net, mode: rr, size: 1B, duration: 500ms, warmup: 100ms}
stop: {fixed: 2}
sentinel: off
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	first := l.tare(ctx, "run", file, "-o", results)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for !store.Exists(results) || done(t, results) == 0 {
		if ctx.Err() != nil {
			t.Fatal("no trial within five minutes")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	kept := done(t, results)
	if out, err := l.tare(ctx, "run", results).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trials := load(t, results)
	nodes := map[string]bool{}
	for i := range trials {
		nodes[trials[i].Node] = true
		if trials[i].Status != record.OK {
			t.Errorf("trial %d: %+v", trials[i].Seq, trials[i].Failure)
		}
	}
	if len(trials) != 12 || kept == 0 || len(nodes) != 2 {
		t.Errorf("%d trials on %v, %d before the kill", len(trials), nodes, kept)
	}
	l.cleaned(ctx, t)
}

// TestObjectsOnCluster: the loads create and delete objects and claims in steps, and measure the API, the starts of pods and the volumes.
// tare clean removes the objects of a killed study.
func TestObjectsOnCluster(t *testing.T) {
	l := theLab(t)
	dir := t.TempDir()
	file, results := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "r")
	err := os.WriteFile(file, []byte(`study: objects
seed: 1
baseline: process
factors: {sandbox: [process]}
workloads:
  pods: {kind: objects, count: 8, steps: 2}
  configmaps: {kind: objects, object: configmap, count: 100, steps: 2, churn: 10, rate: 100}
  volumes: {kind: claims, count: 4, steps: 2}
  alone: {kind: claims, count: 4, steps: 1, parallel: 1, consumer: none, storage: local-immediate}
stop: {fixed: 1}
sentinel: off
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if out, err := l.tare(ctx, "run", file, "-o", results).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trials := load(t, results)
	for i := range trials {
		tr := &trials[i]
		w, _ := tr.Cell.Get(study.FactorWorkload)
		want := map[string]string{"pods": "pod_start_p50", "configmaps": "rate", "volumes": "written_p50", "alone": "volume_gone_p50"}[w]
		if v, ok := tr.Sample(want); tr.Status != record.OK || !ok || v <= 0 {
			t.Errorf("trial %d: %s %v, %+v", tr.Seq, want, v, tr.Failure)
		}
	}
	if len(trials) != 4 {
		t.Errorf("%d trials, want 4", len(trials))
	}
	killed := l.tare(ctx, "run", file, "-o", filepath.Join(dir, "killed"))
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(8 * time.Second) // somewhere in the first trial
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	card, err := readTicket(filepath.Join(dir, "killed"))
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(card, &made); err != nil || made.ID == "" {
		t.Fatalf("%v: %s", err, card)
	}
	// The coordinator keeps the trial for its user, so only clean with the study's ID removes it.
	if out, err := l.tare(ctx, "clean", "--study", made.ID).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.cleaned(ctx, t)
}

// done counts the trials in a results folder.
func done(t *testing.T, dir string) int {
	t.Helper()
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		return 0 // it is being created
	}
	defer func() { _ = db.Close() }()
	trials, err := db.Trials()
	if err != nil {
		t.Fatal(err)
	}
	return len(trials)
}

// cleaned has clean remove what the killed run left, once its coordinator has noticed.
func (l onLab) cleaned(ctx context.Context, t *testing.T) {
	t.Helper()
	for {
		out, err := l.tare(ctx, "clean", "--json").Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var left []removal
		if err := json.Unmarshal(out, &left); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(left) == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("still there: %+v", left)
		}
		time.Sleep(time.Second)
	}
}
