package record

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTraitsAreFacts: what a trial records of its sandboxes is read back, of the isolated end.
func TestTraitsAreFacts(t *testing.T) {
	gvisor := Traits{Family: FamilyGVisor, Runtime: "runsc", Platform: "ptrace", Flags: []string{"platform=ptrace", "network=sandbox"}, OwnKernel: Yes, Sizing: "go"}
	facts := gvisor.Facts("server")
	maps.Copy(facts, Traits{Family: FamilyNative, OwnKernel: No}.Facts("client"))
	facts["server.runtime"] = "/usr/local/bin/runsc" // as a started sandbox says
	facts["server.accelerator"] = AcceleratorKVM
	got, ok := TraitsOf(facts)
	if diff := cmp.Diff(gvisor, got); diff != "" || !ok {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	for name := range gvisor.Facts("server") {
		if !slices.ContainsFunc(TraitFacts(), func(end string) bool { return strings.HasSuffix(name, end) }) {
			t.Errorf("TraitFacts does not list %s", name)
		}
	}
	facts["server."+FactSizing] = "rs" // as an observer found
	if got, _ := TraitsOf(facts); got.Sizing != "rs" {
		t.Errorf("what a sandbox found out is not read: %+v", got)
	}
	if got, ok := TraitsOf(map[string]string{"server.where": "runc", "server.runtime": "/usr/bin/runc"}); ok {
		t.Errorf("results of before have traits: %+v", got)
	}
	if got, ok := TraitsOf(Traits{Family: FamilyNative}.Facts("main")); !ok || got.Family != FamilyNative {
		t.Errorf("natively: %+v, %v", got, ok)
	}
}
