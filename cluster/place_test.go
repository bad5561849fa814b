package cluster

import (
	"strings"
	"testing"
	"time"

	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/trial"
	"tare/workload"
)

// TestLinkOfPods: pods can be on two nodes, and no more can be done with what links them.
func TestLinkOfPods(t *testing.T) {
	two, one := place{at: []record.Node{{Name: "a"}, {Name: "b"}}}, place{at: []record.Node{{Name: "a"}}}
	for _, tt := range []struct {
		at   place
		link sandbox.Link
		want string // "": it can
	}{
		{two, sandbox.Link{}, ""}, {one, sandbox.Link{}, ""}, {two, sandbox.Link{Path: record.PathNodes}, ""},
		{one, sandbox.Link{Path: record.PathNodes}, "only one node"},
		{two, sandbox.Link{Path: record.PathVXLAN}, "cannot be shaped"},
		{two, sandbox.Link{Path: record.PathNodes, Delay: time.Millisecond}, "cannot be shaped"},
	} {
		err := tt.at.checkLink(tt.link)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d nodes, %+v: %v, want %q", len(tt.at.at), tt.link, err, tt.want)
		}
	}
}

// TestNoSavedPods: a workload that saves and restores sandboxes is refused, and the message says where to measure it.
func TestNoSavedPods(t *testing.T) {
	if err := (place{}).Check(trial.Demand{Memory: true}); err == nil || !strings.Contains(err.Error(), "add --observe") {
		t.Error(err)
	}
	if err := (place{observed: true}).Check(trial.Demand{Memory: true}); err != nil {
		t.Error(err)
	}
	if err := (place{}).Check(trial.Demand{Saved: true}); err == nil || !strings.Contains(err.Error(), "measure checkpoint on a host") {
		t.Error(err)
	}
}

// TestRoomOnSimulatedNodes: a load is skipped if the simulated nodes have too little room. It is not skipped if their room is unknown.
func TestRoomOnSimulatedNodes(t *testing.T) {
	for _, c := range []struct {
		room, pods int
		want       string
	}{
		{0, 0, ""},
		{0, 1, "no node with the label type=simulated"},
		{110, 110, ""},
		{110, 111, "simulated nodes take 110 pods, and the load creates 111"},
		{-1, 111, ""},
	} {
		err := place{simulated: c.room}.Check(trial.Demand{Simulated: c.pods})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("room for %d, %d pods: %v, want %q", c.room, c.pods, err, c.want)
		}
	}
}

// TestClaimsNot: a load that creates claims is refused where they would stay unbound, before it creates any.
func TestClaimsNot(t *testing.T) {
	two := []pod.StorageClass{{Name: "local", Default: true, Waits: true}, {Name: "fast"}}
	for _, c := range []struct {
		class     string
		immediate bool
		has       []pod.StorageClass
		want      string
	}{
		{"", false, two, ""},
		{"fast", true, two, ""},
		{"nope", true, nil, ""}, // not known
		{"nope", false, two, `no StorageClass "nope"; write storage: and one of local, fast`},
		{"", true, two, "StorageClass local binds a claim only when a pod uses it; write consumer: pod, or a class that binds at once: write storage: and one of fast"},
		{"", false, two[1:], "no default StorageClass; write storage: and one of fast"},
		{"", false, []pod.StorageClass{}, "no default StorageClass; make one"},
	} {
		err := place{storage: c.has}.Check(trial.Demand{Claims: &workload.Claims{Class: c.class, Immediate: c.immediate}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q of %v: %v, want %q", c.class, c.has, err, c.want)
		}
	}
}
