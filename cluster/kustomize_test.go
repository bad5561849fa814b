package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKustomize: the bases in deploy/kustomize have the roles of today's rules.
func TestKustomize(t *testing.T) {
	for dir, form := range map[string]Tier{
		"cluster": {Own: true}, "cluster-observe": {Own: true, Observe: true}, "namespace": {}, "namespace-observe": {Observe: true},
		"cluster-vms": {Own: true, VMs: true}, "cluster-observe-vms": {Own: true, Observe: true, VMs: true},
		"cluster-objects": {Own: true, Objects: true}, "cluster-observe-objects": {Own: true, Observe: true, Objects: true},
		"namespace-vms": {VMs: true}, "namespace-observe-vms": {Observe: true, VMs: true},
	} {
		file := filepath.Join("../deploy/kustomize", dir, "roles.yaml")
		want := roles("", form)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the rules say (%v); `go test ./cluster -run Kustomize -update` writes it anew", file, err)
		}
	}
}
