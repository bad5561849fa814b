package cluster

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/agent"
	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
)

// TestLaunchFacts: a launched pod tells what was in force, as a pod that lives on does: the trials of startup have no other.
func TestLaunchFacts(t *testing.T) {
	fake, where := newFake(t)
	api, err := kube.FromKubeconfig(where)
	if err != nil {
		t.Fatal(err)
	}
	own, theirs, _, err := control.NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := control.NewHub(own, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = hub.Serve(l) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	fake.starts = func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.QOSClass = "node1", corev1.PodQOSBestEffort
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{ImageID: "registry/tare@sha256:2"}}
		env := map[string]string{}
		for _, e := range p.Spec.Containers[0].Env {
			env[e.Name] = e.Value
		}
		go func() {
			if conn, err := control.Dial(ctx, theirs, l.Addr().String(), env[pod.EnvName], env[pod.EnvToken], "127.0.0.1"); err == nil {
				_ = agent.Serve(ctx, conn, conn, nil)
			}
		}()
	}
	k := pod.New(pod.Class{Name: "gvisor", Class: "gvisor", Handler: "runsc"}, api, hub, &pod.Study{ID: "t1", Namespace: "tare-t1", Image: "registry/tare",
		Machines: []record.Node{{Name: "node1", Host: record.Host{Kernel: "6.1"}}}})
	spec := sandbox.Spec{Want: sandbox.Want{Name: "t1-1-main-0whole", Trial: "t1-1", Node: "node1"}}
	got, err := k.Launch(ctx, spec, sandbox.Command{Args: []string{"/bin/true"}, Stdout: io.Discard, Stderr: io.Discard}, sandbox.Whole)
	if err != nil || got.Exit.Code != 0 {
		t.Fatalf("%v, exit code %d", err, got.Exit.Code)
	}
	for name, want := range map[string]string{record.FactNode: "node1", record.FactImageDigest: "sha256:2", record.FactHandler: "runsc", record.FactKernel: "6.1", record.FactQOS: "BestEffort"} {
		if got.Facts[name] != want {
			t.Errorf("%s is %q, want %q", name, got.Facts[name], want)
		}
	}
}
