package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/cluster"
	"tare/store"
)

// TestMachinesOnCluster: KubeVirt's webhooks admit the machines of every parameter; virt-controller
// makes a launcher pod, which no node takes, so the study and doctor say what is missing; and nothing
// stays on the cluster.
func TestMachinesOnCluster(t *testing.T) {
	if _, err := os.Stat("../../.cache/lab/run/processes/virt-controller.json"); err != nil {
		t.Skip("no cluster of `make lab LAB=-kubevirt` runs")
	}
	l := theLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("study: machines\nbaseline: process\nsentinel: off\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}

	all := write("all.yaml", `sandboxes:
  image: {kind: kubevirt, image: example.org/none}
  claim: {kind: kubevirt, pvc: none, storage-class: local}
factors:
  sandbox: [process, image, claim]
  cores: [1, 4]
  bus: [virtio, scsi, sata]
  io-threads-policy: [none, shared, auto, supplementalPool]
  supplemental-pool-thread-count: [0, 4]
  block-multi-queue: [false, true]
  network-multi-queue: [false, true]
  binding: [masquerade, bridge]
  dedicated-io-thread: [false, true]
exclude:
  - {io-threads-policy: [none, shared, auto], supplemental-pool-thread-count: 4}
  - {io-threads-policy: supplementalPool, supplemental-pool-thread-count: 0}
  - {io-threads-policy: supplementalPool, dedicated-io-thread: true}
  - {bus: [scsi, sata], io-threads-policy: [shared, auto, supplementalPool]}
  - {bus: [scsi, sata], block-multi-queue: true}
  - {bus: [scsi, sata], dedicated-io-thread: true}
workloads: {disk: {kind: fio}}
`)
	said := l.judged(ctx, t, all)
	if len(said) != 256 {
		t.Errorf("%d machines are judged", len(said))
	}
	for name, why := range said {
		if why != "" {
			t.Errorf("%s is refused: %s", name, why)
		}
	}
	small := write("small.yaml", `sandboxes: {image: {kind: kubevirt, image: example.org/none}}
factors: {sandbox: [process, image]}
workloads: {nothing: {kind: noop}}
stop: {fixed: 1}
`)
	results := filepath.Join(dir, "r")
	out, err := l.tare(ctx, "run", small, "-o", results).CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		t.Fatalf("only the baseline ran, and the exit code does not say so: %v\n%s", err, out)
	}
	db, err := store.OpenReadOnly(results)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	skips, err := db.Skips()
	if err != nil || len(skips) != 1 || !strings.Contains(skips[0].Reason, "Unschedulable") || !strings.Contains(skips[0].Reason, "kubevirt.io/schedulable=true") {
		t.Errorf("%v: %+v\n%s", err, skips, out)
	}
	l.cleaned(ctx, t)

	out, err = l.tare(ctx, "doctor", "--json").Output()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != exitHost {
		t.Errorf("no node takes virtual machines, and the exit code does not say so: %v\n%s", err, out)
	}
	var found struct{ Findings []finding }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	problems := map[string]string{}
	for _, f := range found.Findings {
		if f.Area == cluster.AreaVMs {
			problems[f.Name] = f.Problem
		}
	}
	if problems["version"] != "" || problems["admission"] != "" || !strings.HasPrefix(problems["nodes"], "no node takes virtual machines") {
		t.Errorf("doctor: %v", problems)
	}
}

// judged are the machines of a study, and why the API server refuses them; "": it does not.
func (l onLab) judged(ctx context.Context, t *testing.T, file string) map[string]string {
	t.Helper()
	out, _ := l.tare(ctx, "plan", file, "--dry-run=server", "--json").Output() // its code says that some are refused
	var all []cluster.Judgement
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said := map[string]string{}
	for _, j := range all {
		if j.Kind == "VirtualMachineInstance" {
			said[j.Name] = j.Refused
		}
	}
	if len(said) == 0 {
		t.Fatal("no machines are judged")
	}
	return said
}
