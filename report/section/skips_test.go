package section

import (
	"testing"

	"tare/record"
)

// TestSkipsLabel: cells are named by the levels that the reason is about, and otherwise by those that they share.
func TestSkipsLabel(t *testing.T) {
	cell := func(path string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "link-path", Value: path}, {Factor: "cpus", Value: "apart"}}
	}
	for reason, want := range map[string]string{
		"pods cannot be linked so; write link-path: bridge, or leave it out": "link-path=wire or vxlan (3 cells)",
		"the image is not there":                           "workload=rr,cpus=apart (3 cells)",
		"cpus: nobody chooses processors; write cpus: any": "cpus=apart (3 cells)",
	} {
		var skips []record.Skip
		for _, path := range []string{"wire", "vxlan", "wire"} {
			skips = append(skips, record.Skip{Cell: cell(path), Reason: reason})
		}
		s := Skips(skips, false)
		if got := s.Blocks[0].List[0].Lead; got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
