package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

// TestSettings: settings of the host are factors; the size of the ARP table only of workloads with two ends.
func TestSettings(t *testing.T) {
	st, err := Parse("s.yaml", []byte(`study: s
factors: {sandbox: [process], sched-migration-cost: [host, 5ms], arp-limit: [host, 64]}
workloads: {two: {kind: net}, one: {kind: cpu}}
sentinel: off
`), testCatalogue(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]map[string]string{}
	for _, s := range st.Strata {
		for _, c := range s.Cells {
			res, err := st.Resolve(testCatalogue(), c)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := c.Get(FactorWorkload)
			got[w] = append(got[w], res.Settings)
		}
	}
	m, a := record.SettingMigrationCost, record.SettingARPLimit
	want := map[string][]map[string]string{
		"one": {{m: "host"}, {m: "5ms"}},
		"two": {{m: "host", a: "host"}, {m: "host", a: "64"}, {m: "5ms", a: "host"}, {m: "5ms", a: "64"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for text, want := range map[string]string{
		"sched-migration-cost: [2s]": "out of range", "sched-migration-cost: [none]": "write", "arp-limit: [8]": "from 16 to 1048576",
	} {
		_, err := Parse("s.yaml", []byte("study: s\nfactors: {sandbox: [process], "+text+"}\nworkloads: {two: {kind: net}}\n"), testCatalogue(), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
