package advice

import (
	"math"
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// lab is a study with what its cells measured.
type lab struct {
	in     Input
	values map[string]map[int]float64 // by Cell.Key and block
}

func newLab(kind string, params map[string]string) *lab {
	l := &lab{values: make(map[string]map[int]float64)}
	l.in = Input{Compare: "sandbox", Baseline: "process", Rule: stat.NewRule(0.95, 0.05, 0.03, nil, 6),
		Factors: []study.Factor{
			{Name: "workload", Levels: []string{"w"}},
			{Name: "sandbox", Levels: []string{"process", "runc", "runsc-ptrace", "runsc-systrap", "runsc-host", "vm"}},
			{Name: "default_vcpus", Levels: []string{"1", "2", "4", "8"}},
			{Name: "cpu-limit", Levels: []string{"none", "1", "2", "8"}},
			{Name: "rootfs", Levels: []string{"virtiofs", "block"}},
		},
		Traits: map[string]record.Traits{
			"process":       {Family: record.FamilyNative},
			"runc":          {Family: record.FamilyContainer},
			"runsc-ptrace":  {Family: record.FamilyGVisor, Flags: []string{"platform=ptrace", "network=sandbox"}},
			"runsc-systrap": {Family: record.FamilyGVisor, Flags: []string{"platform=systrap", "network=sandbox"}},
			"runsc-kvm":     {Family: record.FamilyGVisor, Flags: []string{"platform=kvm", "network=sandbox"}},
			"runsc-host":    {Family: record.FamilyGVisor, Flags: []string{"platform=systrap", "network=host"}},
			"vm":            {Family: record.FamilyVM},
		},
		Workload: func(string) study.Workload { return study.Workload{Label: "w", Kind: kind, Params: params} },
		Measured: func(c record.Cell, _ string) bool { return len(l.values[c.Key()]) > 0 },
		Mean: func(base record.Cell, others []record.Cell, _ string) stat.Summary {
			mean := make(map[int]float64)
			for block := range l.values[base.Key()] {
				sum := 0.0
				for _, c := range others {
					sum += math.Log(l.values[c.Key()][block]) / float64(len(others))
				}
				mean[block] = math.Exp(sum)
			}
			return stat.Summarise(stat.Pairs(l.values[base.Key()], mean))
		},
	}
	return l
}

var throughput = record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}

// at makes a cell: sandbox and further factors.
func at(sandbox string, levels ...string) record.Cell {
	c := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: sandbox}}
	for i := 0; i+1 < len(levels); i += 2 {
		c = append(c, record.Level{Factor: levels[i], Value: levels[i+1]})
	}
	return c
}

// finds adds a finding of a cost and returns it.
func (l *lab) finds(k cause.Name, role string, c record.Cell) *cause.Finding {
	ratio := 0.5
	level, _ := c.Get("sandbox")
	l.in.Findings = append(l.in.Findings, cause.Finding{CellKey: record.CellKey{Workload: "w", Stratum: "workload=w", Treatment: "sandbox=" + level, Cell: c},
		Response: throughput, Ratio: &ratio, Costs: true, Cause: k, Role: role, Trials: 6})
	return &l.in.Findings[len(l.in.Findings)-1]
}

// measures gives a cell six values around v.
func (l *lab) measures(c record.Cell, v float64) {
	m := make(map[int]float64)
	for b, e := range []float64{-1, 0.6, 0.2, -0.5, 0.9, -0.3} {
		h := 0.0
		for _, r := range c.Key() {
			h = math.Mod(h*31+float64(r), 7)
		}
		m[b+1] = v * math.Exp(0.004*e*(h-3)/3)
	}
	l.values[c.Key()] = m
}

func (l *lab) advice(t *testing.T, rule string) Item {
	t.Helper()
	var names []string
	for _, x := range Build(l.in) {
		if x.Rule == rule {
			return x
		}
		names = append(names, x.Rule)
	}
	t.Fatalf("no advice by the rule %s; there is %v", rule, names)
	return Item{}
}

func patch(x Item, kind string) string {
	for _, p := range x.Patches {
		if p.For == kind {
			return p.Text
		}
	}
	return ""
}

// TestSizingFound: a cluster's Kata has the rule that its trials tell, where no factor of the study does.
func TestSizingFound(t *testing.T) {
	for _, c := range []struct{ found, factor, rule string }{
		{"rs", "", "vhost-queues-apart"}, {"go", "", "vhost-queues"}, {"", "", "vhost-queues"}, {"go", "rs", "vhost-queues-apart"},
	} {
		cell := at("kata", "default_vcpus", "2")
		if c.factor != "" {
			cell = at("kata", "default_vcpus", "2", "sizing", c.factor)
		}
		l := newLab("net", map[string]string{"connections": "16"})
		l.in.Traits = map[string]record.Traits{"kata": {Family: record.FamilyVM, Sizing: c.found}}
		l.finds(cause.Helper, string(record.RoleVhost), cell)
		l.advice(t, c.rule)
	}
}

// TestEachRule: each rule speaks of the case that it is for, with what it sets.
func TestEachRule(t *testing.T) {
	seen := make(map[string]bool)
	net, many := "net", map[string]string{"connections": "16"}
	for _, c := range []struct {
		rule   string
		k      cause.Name
		role   string
		cell   record.Cell
		kind   string
		params map[string]string
		cores  float64
		want   []string // in the text or a patch
	}{
		{"quota-limit", cause.Quota, "", at("vm", "default_vcpus", "1", "cpu-limit", "1"), net, many, 1.23, []string{"limit to 2 cores", `cpu: "2"`, "Do not combine this with more default_vcpus", "cpu-limit=1,2"}},
		{"quota-elsewhere", cause.Quota, "", at("runc"), net, many, 0, []string{"cpu.stat"}},
		{"vhost-queues", cause.Helper, "vhost", at("vm", "default_vcpus", "1"), net, many, 2, []string{"Boot with 2 vCPUs", `default_vcpus: "2"`, "not both", "sockets: 2", "default_vcpus=1,2"}},
		{"vhost-queues", cause.Helper, "vhost", at("vm", "default_vcpus", "1", "cpu-limit", "8"), net, many, 2.2, []string{`default_vcpus: "2"`}},
		{"vhost-queues", cause.Helper, "vhost", at("vm", "default_vcpus", "2"), net, map[string]string{"connections": "3"}, 2, []string{`default_vcpus: "3"`}},
		{"vhost-limited", cause.Helper, "vhost", at("vm", "default_vcpus", "1", "cpu-limit", "2"), net, many, 2, []string{"Remove the CPU limit, then", "cpu: null", `default_vcpus: "2"`}},
		{"vhost-queues-apart", cause.Helper, "vhost", at("vm", "sizing", "rs", "default_vcpus", "1", "cpu-limit", "8", "network_queues", "1"), net, many, 2.2, []string{`network_queues: "2"`, "network_queues = 2", "2 pairs"}},
		{"helper-other", cause.Helper, "vhost", at("vm", "sizing", "rs", "default_vcpus", "1", "cpu-limit", "1"), net, many, 2, []string{"One vhost thread"}}, // its quota is full, and vCPUs bring no queues
		{"vhost-one-worker", cause.Helper, "vhost", at("vm", "default_vcpus", "1"), net, nil, 2, []string{"more connections"}},
		{"vmm-vhost-net", cause.Helper, "vmm", at("vm"), net, many, 2, []string{"modprobe vhost_net", `disable_vhost_net: "false"`}},
		{"iothread-pool", cause.Helper, "iothread", at("vm"), "fio", map[string]string{"jobs": "16"}, 2, []string{"ioThreadsPolicy: supplementalPool", "supplementalPoolThreadCount: 8", "rarely gains beyond 1", "<iothreads>8</iothreads>", `"num-queues": 8`}},
		{"iothread-pool", cause.Helper, "iothread", at("vm"), "fio", nil, 2, []string{"supplementalPoolThreadCount: 4"}},
		{"vmm-iothread", cause.Helper, "vmm", at("vm"), "fio", nil, 2, []string{"supplementalPoolThreadCount: 4"}},
		{"virtiofsd-block", cause.Helper, "virtiofsd", at("vm"), "fio", nil, 2, []string{"volumeDevices", "rootfs=virtiofs,block"}},
		{"virtiofsd-cache", cause.Helper, "virtiofsd", at("vm"), "fio", nil, 2, []string{`virtio_fs_cache: "always"`, "--thread-pool-size=4", "stale"}},
		{"gvisor-host-network", cause.Helper, "sentry", at("runsc-systrap"), net, many, 2, []string{`network = "host"`, "decreases its isolation"}},
		{"gvisor-host-network", cause.Path, "", at("runsc-systrap"), net, nil, 0, []string{"--network=host run"}},
		{"gvisor-files", cause.Helper, "gofer", at("runsc-systrap"), "fio", nil, 2, []string{`directfs = "true"`, "stale data"}},
		{"helper-other", cause.Helper, "shim", at("runc"), net, many, 2, []string{"One shim thread"}},
		{"guest-vcpus", cause.Guest, "", at("vm", "default_vcpus", "2"), net, many, 2, []string{`default_vcpus: "4"`}},
		{"guest-limit", cause.Guest, "", at("vm", "default_vcpus", "1", "cpu-limit", "2"), net, many, 2, []string{`cpu: "4"`, "leave default_vcpus as it is"}},
		{"guest-limit", cause.Guest, "", at("runc", "cpu-limit", "1"), net, many, 1, []string{`cpu: "2"`}},
		{"guest-enough-vcpus", cause.Guest, "", at("vm", "default_vcpus", "2"), net, nil, 2, []string{"processor for each worker"}},
		{"guest-processors", cause.Guest, "", at("runc", "cpus", "0-1"), net, many, 2, []string{"cpuset", `cpus=0-1,any`}},
		{"guest-one", cause.GuestOne, "", at("vm"), net, nil, 1, []string{"no setting of the sandbox helps"}},
		{"host-exclusive", cause.Host, "", at("vm"), net, nil, 2.3, []string{"dedicatedCpuPlacement: true", "cpuManagerPolicy: static", `cpu: "3"`}},
		{"link", cause.Link, "", at("runc"), net, nil, 0, []string{"nothing in the sandbox helps"}},
		{"device", cause.Device, "", at("runc"), "fio", nil, 0, []string{"only queue there"}},
		{"gvisor-files", cause.Gofer, "", at("runsc-systrap"), "files", nil, 0, []string{`directfs = "true"`}},
		{"depth-more", cause.Depth, "", at("vm"), "fio", nil, 0, []string{"io_uring", "blockMultiQueue"}},
		{"io-limit-raise", cause.IOLimit, "", at("runc"), "fio", nil, 0, []string{"rbps=max"}},
		{"fsync-batch", cause.Fsync, "", at("runc"), "fio", nil, 0, []string{"group commit"}},
		{"page-cache-same", cause.PageCache, "", at("vm"), "fio", nil, 0, []string{"cache: warm", "disk_cache: none"}},
		{"launch-keep", cause.Path, "", at("runc"), "startup", nil, 0, []string{"a pool"}},
		{"platform-systrap", cause.Saturation, "", at("runsc-ptrace"), net, many, 1, []string{`platform = "systrap"`}},
		{"launch-program", cause.Untold, "", at("runsc-systrap"), "startup", nil, 0, []string{"a saved state"}},
		{"arp-limit", cause.Path, "", at("runc", "neighbours", "1500", "arp-limit", "1024"), net, nil, 0, []string{"gc_thresh3=8192", "arp-limit=1024,8192"}},
		{"path-host-network", cause.Path, "", at("runc", "neighbours", "900", "arp-limit", "1024"), net, nil, 0, []string{"hostNetwork: true"}}, // it has room
		{"path-batch", cause.Path, "", at("vm", "neighbours", "1500", "arp-limit", "1024"), net, nil, 0, []string{"pipelining"}},                // with a table of its own
		{"path-batch", cause.Path, "", at("vm"), net, nil, 0, []string{"pipelining"}},
		{"path-depth", cause.Path, "", at("vm"), "fio", nil, 0, []string{"deeper iodepth", "in flight together"}},
		{"path-host-network", cause.Path, "", at("runc"), net, nil, 0, []string{"hostNetwork: true"}},
		{"saturation-queues", cause.Saturation, "", at("vm", "default_vcpus", "4", "network_queues", "1"), net, many, 1, []string{"networkInterfaceMultiqueue: true", "combined 2", "network_queues=1,2"}},
		{"saturation-other", cause.Saturation, "", at("vm", "default_vcpus", "4"), net, many, 1, []string{"no thread is full"}}, // it has a pair for each
		{"saturation-sentry", cause.Saturation, "", at("runsc-systrap"), net, many, 1, []string{"num-network-channels"}},
		{"saturation-other", cause.Saturation, "", at("runc"), net, many, 1, []string{"backlog"}},
		{"imbalance-rps", cause.Imbalance, "", at("vm", "default_vcpus", "4"), net, many, 1, []string{"echo f >", "in the guest"}},
		{"interception-systrap", cause.Interception, "", at("runsc-ptrace"), "syscall", nil, 1, []string{`platform = "systrap"`, "sandbox=process,runsc-ptrace,runsc-systrap"}},
		{"interception-kvm", cause.Interception, "", at("runsc-systrap"), "syscall", nil, 1, []string{`platform = "kvm"`, "Nested"}},
		{"interception-calls", cause.Interception, "", at("runsc-systrap"), "syscall", nil, 1, []string{"fewer system calls"}},
		{"emulation-kvm", cause.Emulation, "", at("vm"), net, many, 1, []string{"/dev/kvm"}},
		{"steal-host", cause.Steal, "", at("vm"), net, many, 1, []string{"dedicated processors"}},
		{"softirq-rps", cause.SoftIRQ, "", at("vm"), net, many, 1, []string{"rps_cpus"}},
		{"other-cause", cause.Other, "", at("vm"), net, many, 1, []string{"no setting is known"}},
		{"load", cause.None, "", at("runc"), net, nil, 0, []string{"load itself"}},
		{"tell-apart", cause.Untold, "", at("runc"), net, nil, 0, []string{"helper, fixed delay", "with other levels of connections or size."}},
		{"tell-apart", cause.Untold, "", at("vm", "default_vcpus", "1"), "fio", nil, 0, []string{"other levels of jobs, iodepth, bs or default_vcpus."}},
		{"tell-apart", cause.Untold, "", at("vm"), "fio", nil, 0, []string{"other levels of jobs, iodepth or bs."}},
		{"tell-apart", cause.Untold, "", at("vm"), "sysbench", nil, 0, []string{"with less and with more load."}},
		{"read-more", cause.Unknown, "", at("runc"), net, nil, 0, []string{"are missing: no series; write collect."}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			l := newLab(c.kind, c.params)
			f := l.finds(c.k, c.role, c.cell)
			f.Among, f.Missing = []cause.Name{cause.Helper, cause.Path}, "no series; write collect."
			if c.cores > 0 {
				f.Price = &cause.Price{Unit: "GB", Cores: c.cores}
			}
			x := l.advice(t, c.rule)
			all := x.Text + "\n" + x.Warning + "\n" + x.Unproven
			for _, p := range x.Patches {
				all += "\n" + p.Text
				valid(t, x.Rule, p)
			}
			for _, w := range c.want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not in it:\n%s", w, all)
				}
			}
			if x.Source == "" || len(x.Cells) != 1 || !(x.Weight > 0) || x.Gain != nil || (x.Unproven == "") != (len(x.Patches) == 0 && len(x.Sets) == 0) {
				t.Errorf("source, cells, weight, gain, unproven: %+v", x)
			}
			seen[c.rule] = true
		})
	}
	l := newLab(net, nil)
	l.finds(cause.None, "", at("runc")).Costs = false
	if x := l.advice(t, "no-setting"); len(x.Patches) > 0 || x.Weight != 0 || x.Unproven != "" {
		t.Errorf("nothing costs, and yet: %+v", x)
	}
	seen["no-setting"] = true
	seen["search-continue"] = true // TestStoppedSearch
	seen["undecided"] = true       // TestUndecided
	seen["vcpus-or-limit"] = true  // TestBoth
	for _, r := range Rules() {
		if !seen[r.Name] {
			t.Errorf("the rule %s has no case here", r.Name)
		}
	}
}
