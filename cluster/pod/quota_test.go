package pod

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tare/record"
	"tare/sandbox"
)

// TestLimit: a pod that is not measured gets what a quota demands, and what is measured must have it by the study.
func TestLimit(t *testing.T) {
	p := kind(Class{Name: sandbox.Native}).manifest(&sandbox.Want{Name: "t1-check"}, "x")
	got := Limit(p, errors.New(`pods "x" is forbidden: failed quota: q: must specify limits.cpu for: tare; requests.memory for: tare`))
	r := p.Spec.Containers[0].Resources
	if !slices.Equal(got, []string{"limits.cpu", "requests.memory"}) || r.Limits.Cpu().IsZero() || r.Requests.Memory().IsZero() || r.Requests.Cpu().Cmp(*r.Limits.Cpu()) > 0 {
		t.Errorf("%v: %+v", got, r)
	}
	for _, other := range []string{"exceeded quota: q", "failed quota: q: must specify limits.example.org/gpu for: tare"} {
		if got := Limit(p, errors.New(other)); got != nil {
			t.Errorf("%s: %v", other, got)
		}
	}
	k := kind(Class{Name: sandbox.Native})
	k.study.Demands, k.study.Machines = []string{"limits.cpu", "limits.memory"}, []record.Node{{Host: record.Host{Threads: 4, MemoryBytes: 1 << 40}}}
	err := k.CheckHere(t.Context(), sandbox.Spec{Want: sandbox.Want{CPULimit: 1}})
	if err == nil || !strings.Contains(err.Error(), "refuses pods without limits.memory; write factors: {cpu-limit: [1], memory-limit: [1GiB]}") {
		t.Errorf("no memory limit: %v", err)
	}
	if err := k.CheckHere(t.Context(), sandbox.Spec{Want: sandbox.Want{CPULimit: 1, MemoryLimit: 1 << 30}}); err != nil {
		t.Error(err)
	}
	if got := without(corev1.ResourceRequirements{}, nil); got != "" {
		t.Error(got)
	}
}
