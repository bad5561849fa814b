package analyse

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/record"
	"tare/study"
)

// TestCertificates: what both sides of each block shared is told from what differed, and a limit
// that the study compares may differ.
func TestCertificates(t *testing.T) {
	shared := record.Cell{{Factor: "workload", Value: "rr"}}
	st := &study.Study{Compare: "sandbox", Baseline: "process", Traits: native(),
		Workloads: []study.Workload{{Label: "rr", Kind: "rr", Responses: []string{"x"}}}}
	s := study.Stratum{Key: shared.Key(), Shared: shared}
	facts := map[string]map[string]string{
		"process": {"server.node": "n1", "server.cpu_limit_in_force": "0.5", "server.memory_limit_in_force": "none"},
		"runc":    {"server.node": "n1", "server.cpu_limit_in_force": "0.5", "server.memory_limit_in_force": "none", "client.node": "n2"},
		"gvisor":  {"server.node": "n2", "server.cpu_limit_in_force": "none", "server.memory_limit_in_force": "268435456"},
		"silent":  nil,
		// A handler is part of the sandbox; a snapshotter is not. What one side does not tell is not compared.
		"kata": {"server.runtime_handler": "kata", "server.root_file_system": "erofs", "server.network": "eth0", "server.qos_class": "Guaranteed"},
	}
	facts["process"]["server.runtime_handler"], facts["process"]["server.root_file_system"] = "runc", "overlay, snapshotter overlayfs"
	facts["process"]["server.qos_class"] = "Guaranteed"
	// The default class of a cluster is often runc itself. Without an observer, its runtime is unknown.
	facts["process"]["server.runtime_program"], facts["runc"]["server.runtime_program"] = "/usr/sbin/runc {}", "/usr/sbin/runc {}"
	facts["gvisor"]["server.runtime_program"] = "/usr/sbin/runc {\"debug\":true}"
	delete(facts["runc"], "client.node")
	var trials []record.Trial
	for _, box := range []string{"process", "runc", "gvisor", "silent", "kata"} {
		cell := append(shared[:1:1], record.Level{Factor: "sandbox", Value: box})
		s.Cells = append(s.Cells, cell)
		for block := range 2 {
			trials = append(trials, record.Trial{Seq: len(trials) + 1, Block: block + 1, Attempt: 1, Cell: cell, Status: record.OK, Facts: facts[box],
				Samples: []record.Sample{{Name: "x", Value: 1}}})
		}
	}
	st.Strata = []study.Stratum{s}
	r := Analyse(st, trials, nil)
	want := []Certificate{
		{Stratum: "workload=rr", Treatment: "sandbox=gvisor", Blocks: 2, Differ: []string{
			"server: node n2, in the baseline n1",
			"server: CPU limit in force none, in the baseline 0.5 cores",
			"server: memory limit in force 256MiB, in the baseline none",
		}, Unread: []string{"root file system"}},
		{Stratum: "workload=rr", Treatment: "sandbox=kata", Blocks: 2, Same: []string{"QoS class"}, Differ: []string{
			"server: root file system erofs, in the baseline overlay, snapshotter overlayfs",
		}, Unread: []string{"CPU limit in force", "memory limit in force"}},
		{Stratum: "workload=rr", Treatment: "sandbox=runc", Blocks: 2, Same: []string{"node", "CPU limit in force", "memory limit in force"}, Program: "/usr/sbin/runc", Unread: []string{"root file system"}},
	}
	if d := cmp.Diff(want, r.Certificates); d != "" {
		t.Error(d)
	}
	for i := range r.Compared {
		c := &r.Compared[i]
		if box, _ := c.Cell.Get("sandbox"); r.Unequal(c) != (box == "gvisor" || box == "kata") {
			t.Errorf("%s: %v", box, r.Certificate(c))
		}
	}
}

// TestCertificateLevels: a row whose sides differ in another factor than the compared one says so. What the study moves together
// with the compared factor, and the effect of one other factor alone, are what it compares.
func TestCertificateLevels(t *testing.T) {
	cell := func(levels ...string) (c record.Cell) {
		for i := 0; i < len(levels); i += 2 {
			c = append(c, record.Level{Factor: levels[i], Value: levels[i+1]})
		}
		return c
	}
	const box, class, size = "sandbox", "storage-class", "claim-size"
	for name, tt := range map[string]struct {
		cells []record.Cell // the baseline first
		want  [][]string    // of each of the others
	}{
		"another storage class": {[]record.Cell{cell(box, "process", class, "none"), cell(box, "process", class, "local"), cell(box, "gvisor", class, "none"), cell(box, "gvisor", class, "local"), cell(box, "vm")},
			[][]string{nil, nil, {"storage-class local, in the baseline none"}, nil}},
		"two others": {[]record.Cell{cell(box, "process", class, "a", size, "1G"), cell(box, "process", class, "b", size, "2G"), cell(box, "process", class, "a", size, "2G")},
			[][]string{{"storage-class b, in the baseline a", "claim-size 2G, in the baseline 1G"}, nil}},
		"moved together": {[]record.Cell{cell(box, "process", class, "a"), cell(box, "gvisor", class, "b")}, [][]string{nil}},
	} {
		st := &study.Study{Compare: box, Baseline: "process", Traits: native(), Workloads: []study.Workload{{Label: "w", Kind: "w", Responses: []string{"x"}}}}
		s := study.Stratum{Key: "workload=w", Shared: cell("workload", "w")}
		var trials []record.Trial
		for _, c := range tt.cells {
			c = append(s.Shared[:1:1], c...)
			s.Cells = append(s.Cells, c)
			trials = append(trials, record.Trial{Seq: len(trials) + 1, Block: 1, Attempt: 1, Cell: c, Status: record.OK, Facts: map[string]string{"main.node": "n1"}, Samples: []record.Sample{{Name: "x", Value: 1}}})
		}
		st.Strata = []study.Stratum{s}
		r := Analyse(st, trials, nil)
		for i := range tt.want {
			c := &Comparison{Stratum: s.Key, Treatment: tt.cells[i+1].Key()}
			if d := cmp.Diff(tt.want[i], r.Certificate(c).Differ); d != "" || r.Unequal(c) != (tt.want[i] != nil) {
				t.Errorf("%s: %s: unequal %t: %s", name, c.Treatment, r.Unequal(c), d)
			}
		}
	}
}

// TestCertificateMemory: a comparison of a disk with a page cache says so on a host too.
func TestCertificateMemory(t *testing.T) {
	trial := func(codes ...string) *record.Trial {
		t := &record.Trial{Facts: map[string]string{}}
		for _, code := range codes {
			t.Warnings = append(t.Warnings, record.Warning{Code: code})
		}
		return t
	}
	disk, memory := trial("few-requests"), trial("short-run", record.WarnPageCache)
	for _, x := range []struct {
		base, own []*record.Trial
		want      []string
	}{
		{[]*record.Trial{disk, disk, disk}, []*record.Trial{memory, disk, memory}, []string{"memory answered its requests, a disk those of the baseline"}},
		{[]*record.Trial{memory}, []*record.Trial{disk}, []string{"a disk answered its requests, memory those of the baseline"}},
		{[]*record.Trial{memory, disk}, []*record.Trial{memory, memory}, nil}, // one of two may be chance
	} {
		base, own := map[int]*record.Trial{}, map[int]*record.Trial{}
		for i := range x.own {
			base[i+1], own[i+1] = x.base[i], x.own[i]
		}
		var c Certificate
		c.compare(base, own, nil, nil)
		if d := cmp.Diff(x.want, c.Differ); d != "" {
			t.Error(d)
		}
	}
}

// TestCertificateOfCopies: where the copies of both sides were, and that another node's kernel counts where the baseline has no copy there.
func TestCertificateOfCopies(t *testing.T) {
	shared := record.Cell{{Factor: "workload", Value: "cpu"}}
	of := func(compare string, base, own map[string]string) []Certificate {
		st := &study.Study{Compare: compare, Baseline: "a", Workloads: []study.Workload{{Label: "cpu", Kind: "cpu", Responses: []string{"x"}}}}
		s := study.Stratum{Key: shared.Key(), Shared: shared}
		var trials []record.Trial
		for i, facts := range []map[string]string{base, own} {
			s.Cells = append(s.Cells, append(shared[:1:1], record.Level{Factor: compare, Value: []string{"a", "b"}[i]}))
			for block := range 2 {
				trials = append(trials, record.Trial{Seq: len(trials) + 1, Block: block + 1, Attempt: 1, Cell: s.Cells[i], Status: record.OK, Facts: facts,
					Samples: []record.Sample{{Name: "x", Value: 1}}})
			}
		}
		st.Strata = []study.Stratum{s}
		return Analyse(st, trials, nil).Certificates
	}
	alone := map[string]string{"main.node": "n1", "main.node_kernel": "6.1"}
	spread := map[string]string{"main.node": "n1", "main-2.node": "n2", "main-3.node": "n1", "main.node_kernel": "6.1", "main-2.node_kernel": "6.2", "main-3.node_kernel": "6.1"}
	shares := maps.Clone(spread)
	shares["main.node_machine"], shares["main-2.node_machine"], shares["main-3.node_machine"] = "m", "m", "m"
	sharing := &Copies{Count: 3, AtOnce: 2, Most: 2, On: []string{"n1", "n2"}, Shared: true}
	crowd := map[string]string{"main.node": "n2", "main-2.node": "n2", "main-3.node": "n2", "main.node_kernel": "6.1", "main-2.node_kernel": "6.1", "main-3.node_kernel": "6.1"}
	one, two := &Copies{Count: 1, AtOnce: 1, Most: 1, On: []string{"n1"}}, &Copies{Count: 3, AtOnce: 2, Most: 2, On: []string{"n1", "n2"}}
	unlike := []string{"main-2: node's kernel 6.2, of the first copy 6.1"}
	for name, tt := range map[string]struct {
		compare   string
		base, own map[string]string
		want      Certificate
	}{
		"more copies":   {study.FactorCopies, alone, spread, Certificate{Same: []string{"node"}, Differ: unlike, Copies: two, BaseCopies: one}},
		"as many":       {study.FactorSandbox, spread, spread, Certificate{Same: []string{"node", "node's kernel"}, Copies: two, BaseCopies: two}},
		"one machine":   {study.FactorSandbox, shares, shares, Certificate{Same: []string{"node", "node's kernel"}, Copies: sharing, BaseCopies: sharing}},
		"another place": {study.FactorCopiesOn, crowd, spread, Certificate{Differ: []string{"main-2: node's kernel 6.2, in the baseline 6.1"}, Copies: two, BaseCopies: &Copies{Count: 3, AtOnce: 1, Most: 3, On: []string{"n2"}}}},
		"no copies":     {study.FactorSandbox, alone, alone, Certificate{Same: []string{"node", "node's kernel"}}},
	} {
		got := of(tt.compare, tt.base, tt.own)
		tt.want.Stratum, tt.want.Treatment, tt.want.Blocks = shared.Key(), tt.compare+"=b", 2
		if d := cmp.Diff([]Certificate{tt.want}, got, cmpopts.IgnoreFields(Certificate{}, "Unread")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
