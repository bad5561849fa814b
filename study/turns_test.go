package study

import "testing"

// TestTurns: auto begins with two turns and says so, and what a workload says itself wins, in both ways.
func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		own, all string
		turns    int
		auto     bool
	}{
		{"", "auto", 2, true},
		{"3", "auto", 3, false},
		{"auto", "4", 2, true},
		{"", "4", 4, false},
		{"auto", "", 2, true},
	} {
		src := "study: s\nfactors: {sandbox: [process, runc]}\n"
		if tt.all != "" {
			src += "turns: " + tt.all + "\n"
		}
		src += "workloads: {cpu: {"
		if tt.own != "" {
			src += "turns: " + tt.own
		}
		st, err := Parse("s.yaml", []byte(src+"}}\n"), testCatalogue(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if w := st.WorkloadOf(0); w.Turns != tt.turns || w.AutoTurns != tt.auto {
			t.Errorf("%q of a workload and %q of all: %d turns, auto %v", tt.own, tt.all, w.Turns, w.AutoTurns)
		}
	}
}
