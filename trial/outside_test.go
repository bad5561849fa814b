package trial

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// neighbourhood is a place that finds pods of others by the names of their parts.
type neighbourhood struct {
	Place
	pods map[string]int
}

func (n neighbourhood) Outside(_ context.Context, o workload.Outside) ([]sandbox.LocalScope, string, error) {
	if n.pods[o.Name] == 0 {
		return nil, "", errors.New("there are none")
	}
	return make([]sandbox.LocalScope, n.pods[o.Name]), o.Labels, nil
}

// TestOutside: each pod that a load passes through gets an end of its own, and facts say which are read or why none is.
func TestOutside(t *testing.T) {
	role := workload.Role{Outside: []workload.Outside{{Name: "controller", Labels: "a"}, {Name: "controller", Labels: "b"}, {Name: "backend"}}}
	for name, c := range map[string]struct {
		place Place
		ends  []string
		facts map[string]string
	}{
		"some": {neighbourhood{pods: map[string]int{"controller": 1}}, []string{"controller", "controller-2"},
			map[string]string{"controller" + record.FactOutside: "a, b", "backend" + record.FactOutside: record.NotRead + "there are none"}},
		"a host": {nil, nil, map[string]string{
			"controller" + record.FactOutside: record.NotRead + "run the study on the cluster, with --on k8s and --observe",
			"backend" + record.FactOutside:    record.NotRead + "run the study on the cluster, with --on k8s and --observe"}},
	} {
		one := &trial{set: set{maker: &Maker{Place: c.place}, endpoints: []*endpoint{{role: role}}}, rec: &record.Trial{Facts: map[string]string{}}}
		var ends []string
		for _, s := range one.outside(t.Context()) {
			ends = append(ends, s.Endpoint)
		}
		if d := cmp.Diff(c.ends, ends) + cmp.Diff(c.facts, one.rec.Facts); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}
