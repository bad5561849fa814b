package study

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
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

// TestStorageFactors: how a sandbox stores its volumes is no factor of a workload that has none.
func TestStorageFactors(t *testing.T) {
	cat := testCatalogue()
	kind := cat.Sandboxes["process"]
	kind.Params = append(slices.Clone(kind.Params), param.Param{Name: "storage-class", Type: param.String, Default: "none", Storage: true, Help: "of volumes"})
	cat.Sandboxes["process"] = kind
	stores := cat.Workloads["net"]
	stores.Stores = true
	cat.Workloads["net"] = stores
	st, err := Parse("s.yaml", []byte("study: s\nfactors: {sandbox: [process], storage-class: [none, fast]}\nworkloads: {disk: {kind: net}, none: {kind: cpu}}\nsentinel: off\n"), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range st.Strata {
		for _, c := range s.Cells {
			w, _ := c.Get(FactorWorkload)
			got[w]++
		}
	}
	if got["disk"] != 2 || got["none"] != 1 {
		t.Errorf("cells of each workload: %v, want 2 of disk and 1 of none", got)
	}
}

// TestCommonSandboxParams: a parameter that all sandboxes have is compared like for like, each of its levels in a stratum with a
// baseline. One that the baseline lacks stays part of the treatment, and so do the parameters of a study's only sandbox.
func TestCommonSandboxParams(t *testing.T) {
	cat := testCatalogue()
	class := param.Param{Name: "storage-class", Type: param.String, Default: "none", Storage: true, Help: "of volumes"}
	for _, box := range []string{"process", "runc"} {
		kind := cat.Sandboxes[box]
		kind.Params = append(slices.Clone(kind.Params), class)
		cat.Sandboxes[box] = kind
	}
	stores := cat.Workloads["net"]
	stores.Stores = true
	cat.Workloads["net"] = stores
	for name, tt := range map[string]struct {
		factors string
		strata  []string // the treatments of each
	}{
		"all have it":          {"sandbox: [process, runc], storage-class: [none, fast]", []string{"sandbox=process sandbox=runc", "sandbox=process sandbox=runc"}},
		"written first":        {"storage-class: [none, fast], sandbox: [process, runc]", []string{"sandbox=process sandbox=runc", "sandbox=process sandbox=runc"}},
		"one lacks it":         {"sandbox: [process, runsc-systrap], storage-class: [none, fast]", []string{"sandbox=process,storage-class=none sandbox=process,storage-class=fast sandbox=runsc-systrap"}},
		"one sandbox":          {"sandbox: [process], storage-class: [none, fast]", []string{"sandbox=process,storage-class=none sandbox=process,storage-class=fast"}},
		"classes are compared": {"sandbox: [process, runc], storage-class: [none, fast]}\ncompare: storage-class\nstop: {fixed: 3", []string{"storage-class=none storage-class=fast", "storage-class=none storage-class=fast"}},
	} {
		st, err := Parse("s.yaml", []byte("study: s\nfactors: {"+tt.factors+"}\nworkloads: {disk: {kind: net}}\nsentinel: off\n"), cat, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for i, s := range st.Strata {
			var keys []string
			for _, c := range s.Cells {
				keys = append(keys, st.Treatment(i, c).Key())
			}
			if s.Baseline != 0 {
				t.Errorf("%s: the baseline of %s is cell %d", name, s.Key, s.Baseline)
			}
			got = append(got, strings.Join(keys, " "))
		}
		if d := cmp.Diff(tt.strata, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
