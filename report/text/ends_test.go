package text

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/report/section"
)

func TestEnds(t *testing.T) {
	res := testResult()
	one := analyse.Placement{Stratum: "workload=density", Roles: []analyse.PlacedRole{{Role: "main", Sandboxed: true}}, Text: "in the sandbox"}
	res.Placements = []analyse.Placement{one}
	var b strings.Builder
	if write(&b, section.Placements(res), Options{Width: 60}); b.Len() > 0 {
		t.Errorf("with one end there is no choice to tell of: %q", b.String())
	}
	res.Placements = []analyse.Placement{
		{Stratum: "workload=net,size=64", Roles: []analyse.PlacedRole{{Role: "server", Sandboxed: true}, {Role: "client"}}, Text: "server in the sandbox, client native"},
		{Stratum: "workload=net,size=64K", Roles: []analyse.PlacedRole{{Role: "server", Sandboxed: true}, {Role: "client"}}, Text: "server in the sandbox, client native"}, one}
	write(&b, section.Placements(res), Options{Width: 60})
	want := "\nwhere each end ran (of process, all natively):\n  server in the sandbox, client native: net size=64, net\n    size=64K\n  in the sandbox: density\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	fits(t, b.String(), 60)
}
