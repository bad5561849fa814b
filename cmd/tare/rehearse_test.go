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
	"tare/study"
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

// TestOtherData: trials with their data on another disk are not added to a folder, and the command that resumes it names its directory.
func TestOtherData(t *testing.T) {
	const a, b = "--data /a", "--data '/b c'"
	for _, c := range []struct{ has, now, want string }{
		{a, a, ""}, {"", "", ""}, {a, "", "`tare run dir --data /a`"}, {"", a, "`tare run dir`"}, {b, a, "`tare run dir --data '/b c'`"},
	} {
		err := otherPlace(store.Meta{Flags: c.has}, "dir", site.About{Flag: c.now})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want+" resumes those") {
			t.Errorf("%q then %q: %v", c.has, c.now, err)
		}
	}
}

// TestSameDisk: a folder whose trials had files on one disk does not go on with files on another. A study without files does.
func TestSameDisk(t *testing.T) {
	on := func(data string) []record.Node { return []record.Node{{Name: "h", Host: record.Host{Data: data}}} }
	for fact, refused := range map[string]bool{"filesystem, a directory on ext4 (rw) on vdb": true, "": false, "filesystem, in a file on xfs (rw) on vdc": false} {
		db, err := store.Create(filepath.Join(t.TempDir(), "r"), store.Meta{StudySource: []byte("study: s\n"), StudyFile: "s.yaml", Nodes: on("ext4 (rw) on vdb")})
		if err != nil {
			t.Fatal(err)
		}
		trial := record.Trial{Seq: 1, Block: 1, Attempt: 1, Status: record.OK, Cell: record.Cell{{Factor: "workload", Value: "w"}}, Facts: map[string]string{}}
		if fact != "" {
			trial.Facts["main."+record.FactStorage+"data"] = fact
		}
		if err := db.Append(t.Context(), &trial, record.Evidence{}); err != nil {
			t.Fatal(err)
		}
		if err := sameDisk(db, on("ext4 (rw) on vdb")); err != nil {
			t.Errorf("%q, on the same disk: %v", fact, err)
		}
		if err := sameDisk(db, on("tmpfs (rw)")); (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "were on ext4 (rw) on vdb; the directory for data is now on tmpfs (rw)") {
			t.Errorf("%q, on another disk: %v", fact, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		st := &study.Study{Name: "s", Source: []byte("study: s\n")}
		for disk, refused := range map[string]bool{"ext4 (rw) on vdb": false, "tmpfs (rw)": refused} {
			f := runFlags{beside: db.Dir()}
			own, err := f.folder(filepath.Join(t.TempDir(), "v"), "s.yaml", st, site.About{}, on(disk))
			if (err != nil) != refused || err != nil && !strings.HasSuffix(err.Error(), "name a directory on it with --data") {
				t.Errorf("%q, verified on %s: %v", fact, disk, err)
			}
			if err == nil {
				if err := own.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
