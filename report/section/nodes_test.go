package section

import (
	"testing"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
)

// TestNodes: each comparison has the nodes with its lowest and highest ratio, and the share that lies
// between nodes, or a sign that it cannot be said.
func TestNodes(t *testing.T) {
	row := func(treatment string, share *stat.Share) (analyse.Comparison, analyse.NodeShare) {
		return analyse.Comparison{Workload: "rr", Stratum: "workload=rr", Treatment: treatment, Response: record.Response{Name: "time"}, First: true},
			analyse.NodeShare{Stratum: "workload=rr", Treatment: treatment, Response: "time", Share: share,
				Ratios: []analyse.NodeRatio{{Node: "a", Ratio: 1.5}, {Node: "b", Ratio: 1.25}, {Node: "c", Ratio: 1.3}}}
	}
	r := &analyse.Result{}
	if s := Nodes(r); len(s.Blocks) != 0 {
		t.Errorf("of one node: %+v", s)
	}
	for _, x := range []struct {
		treatment string
		share     *stat.Share
	}{{"sandbox=runc", &stat.Share{Share: 0.4, Lo: 0.05, Hi: 0.91}}, {"sandbox=gvisor", nil}} {
		c, n := row(x.treatment, x.share)
		r.Compared, r.BetweenNodes = append(r.Compared, c), append(r.BetweenNodes, n)
	}
	s := Nodes(r)
	if len(s.Blocks) != 2 {
		t.Fatalf("%+v", s.Blocks)
	}
	for i, want := range [][]string{{"1.250 on b", "1.500 on a", "40 %", "5 % to 91 %"}, {"1.250 on b", "1.500 on a", "?", ""}} {
		for j, w := range want {
			if got := s.Blocks[0].Table.Rows[i][2+j].First; got != w {
				t.Errorf("row %d: %q, want %q", i, got, w)
			}
		}
	}
}
