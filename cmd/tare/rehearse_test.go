package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/cluster/kube"
	"tare/record"
	"tare/site"
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

// TestOtherPlace: results of a cluster and of a host are never mixed in a folder, and the message says how each goes on.
func TestOtherPlace(t *testing.T) {
	const cluster = "--on k8s --tare-image r/tare@sha256:1"
	for _, c := range []struct {
		tools map[string]string
		flag  string
		want  string // "": they may be mixed
	}{
		{nil, "", ""},
		{map[string]string{record.ToolKubelet: "v1.34"}, cluster, ""},
		{map[string]string{record.ToolKubelet: "v1.34"}, "", "`tare run r --on k8s` and the cluster's flags"},
		{map[string]string{record.ToolKubelet: "v1.34"}, "--host db1", "results of a Kubernetes cluster"},
		{map[string]string{"runc": "1.1"}, cluster, "`tare run r` resumes those"},
	} {
		err := otherKind(store.Meta{Host: record.Host{Tools: c.tools}}, "r", site.About{Flag: c.flag})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v with %q: %v, want %q", c.tools, c.flag, err, c.want)
		}
	}
}

// TestGoOn: the command that resumes a study on a cluster selects the cluster as the command before did, but the results of
// a study are the same whichever flags reach the cluster.
func TestGoOn(t *testing.T) {
	k := clusterFlags{Where: kube.Where{Kubeconfig: "my config", Context: "prod", As: "me", Namespace: "bench"}}
	w := k.where()
	if want := " --kubeconfig 'my config' --context prod --as me"; w.Flags != want {
		t.Errorf("flags %q, want %q", w.Flags, want)
	}
	at := site.About{Flag: "--on k8s --tare-image t:1", Reach: strings.TrimSpace(w.Flags)}
	if got, want := goOn("out dir", at), "tare run 'out dir' --on k8s --tare-image t:1 --kubeconfig 'my config' --context prod --as me"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for flag, want := range map[string]string{"": "tare run out", "--on model": "tare run out --on model"} {
		if got := goOn("out", otherSite(at, flag)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
