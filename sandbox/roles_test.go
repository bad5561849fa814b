package sandbox_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/record"
	"tare/sandbox"
)

// TestLocalScopeCrossesAProcess: all that collectors need but the guest's stream can be sent,
// the rules of thread roles included.
func TestLocalScopeCrossesAProcess(t *testing.T) {
	sent := sandbox.LocalScope{
		Scope:   sandbox.Scope{Node: "n1", Sandbox: "x-server", Kind: "mine", Endpoint: "server"},
		Cgroups: []string{"tare/x"}, Limited: "tare/x/c", Pids: []int{7}, Alone: []int{8},
		Roles:   sandbox.ThreadRoles{{Role: record.RoleShim, Program: "youki"}, sandbox.AgentRule(), {Role: record.RoleVCPU, Comm: "CPU "}},
		Network: sandbox.Network{Path: "/run/netns/x", Addr: netip.MustParsePrefix("198.18.0.2/15")},
	}
	for _, want := range []sandbox.LocalScope{{}, sent} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got sandbox.LocalScope
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("sent and received (-want +got):\n%s", diff)
		}
	}
	for _, c := range []struct {
		comm string
		args []string
		want record.ThreadRole
	}{
		{"youki:[2:INIT]", []string{"/usr/bin/youki", "run"}, record.RoleShim},
		{"CPU 0/KVM", []string{"youkis"}, record.RoleVCPU},
		{"tare", []string{"/tare", "internal", "agent"}, record.RoleHarness},
		{"tare", []string{"/tare", "internal"}, record.RoleWorkload},
		{"sh", nil, record.RoleWorkload},
	} {
		if got := sent.Roles.Of(sandbox.Thread{Comm: c.comm, Args: c.args}); got != c.want {
			t.Errorf("%q of %q is %s, want %s", c.comm, c.args, got, c.want)
		}
	}
}
