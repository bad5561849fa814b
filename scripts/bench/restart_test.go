package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/cluster/objects"
	"tare/cluster/pod"
	"tare/param"
	"tare/record"
	loads "tare/workload/objects"
)

// TestRestart: the API server is killed while objects are created, and starts again. The load keeps its objects and its steps, and says for how
// long the server could not be reached.
func TestRestart(t *testing.T) {
	for _, kind := range []string{loads.ConfigMap, loads.Pod} {
		t.Run(kind, func(t *testing.T) { restarts(t, kind) })
	}
}

func restarts(t *testing.T, kind string) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{root: root + "/../..", work: t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p, err := b.newPlane(ctx, "restart")
	if err != nil {
		t.Skip(err)
	}
	defer p.stop()
	t.Setenv(pod.EnvStudy, "restart")
	t.Setenv(pod.EnvImage, "none")
	given := param.Values{"object": kind, "count": "900", "steps": "3", "rate": "100", "timeout": "60s"}
	if kind == loads.Pod {
		given["count"], given["rate"], given["nodes"] = "90", "15", loads.Simulated
		if err := p.simulate(ctx, b.root, 2); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--kubeconfig", p.kubeconfig}
	for name, value := range given {
		args = append(args, "--"+name, value)
	}
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var said bytes.Buffer
	go func() {
		code := objects.Main(args, w, &said)
		_ = w.Close()
		ended <- code
	}()
	var out bytes.Buffer
	line := make([]byte, 1<<16)
	for restarted := false; ; {
		n, err := r.Read(line)
		out.Write(line[:n])
		if strings.Contains(out.String(), `"number":1`) && !restarted {
			restarted = true
			time.Sleep(time.Second) // in the second step
			server := p.daemons[1]
			_ = server.Process.Signal(syscall.SIGKILL)
			_ = server.Wait()
			time.Sleep(time.Second)
			if err := p.start(ctx, append([]string{"kube-apiserver"}, server.Args[1:]...)); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break
		}
	}
	if code := <-ended; code != 0 {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	v, err := param.Fill(loads.New().Params(), given)
	if err != nil {
		t.Fatal(err)
	}
	rd, err := loads.New().Parse("load", v, &out)
	if err != nil {
		t.Fatal(err)
	}
	made := 0.0
	for _, s := range rd.Samples {
		if s.Name == "calls" && strings.Contains(string(s.Labels), "verb=create") {
			made += s.Value
		}
		if s.Name == record.StepBound && strings.Contains(string(s.Labels), "step=2") {
			t.Log(s.Original)
		}
	}
	if want := map[string]float64{loads.ConfigMap: 900, loads.Pod: 90}[kind]; made != want {
		t.Errorf("%g objects, want %g", made, want)
	}
	if len(rd.Warnings) != 1 || rd.Warnings[0].Code != "objects-outage" || !strings.Contains(rd.Warnings[0].Text, "in step 2 of 3") {
		t.Errorf("%v, want a warning of the outage", rd.Warnings)
	}
}
