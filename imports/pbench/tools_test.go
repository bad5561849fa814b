package pbench

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/imports"
	"tare/record"
)

// placed writes what one of Pbench's own CSVs says into a sample, a row a step from
// its start on.
func placed(t *testing.T, from, to string, start time.Time, step time.Duration) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/captured", from))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		_, rest, _ := strings.Cut(line, ",")
		at := "timestamp_ms"
		if i > 0 {
			at = strconv.FormatInt(start.UnixMilli()+int64(i-1)*step.Milliseconds(), 10)
		}
		out.WriteString(at + "," + rest + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// column is the mean of the columns whose names a word begins, of the rows after the
// first, a row a second, over the trial's seconds: by hand.
func column(t *testing.T, file string, seconds float64, is func(string) bool) float64 {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata/captured", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, 0
	for i, name := range rows[0] {
		if i == 0 || !is(name) {
			continue
		}
		n++
		for k, row := range rows[2:] { // row k + 2 is of the second from k to k + 1
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v * max(0, min(1, seconds-float64(k)))
		}
	}
	if n == 0 {
		t.Fatalf("no column of %s", file)
	}
	return sum / min(seconds, float64(len(rows)-2))
}

func exactly(name string) func(string) bool { return func(s string) bool { return s == name } }
func any1(string) bool                      { return true }

// host is a sample beside which tools ran on a host and in its guest.
func host(t *testing.T) (dir string, trial *imports.Trial) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "kata")
	if err := os.CopyFS(dir, os.DirFS("testdata/kata")); err != nil {
		t.Fatal(err)
	}
	set, err := Read([]Tree{{Dir: dir}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range set.Trials {
		if x := &set.Trials[i]; x.Facts["imported.iteration"] == "1-tcp_rr-64B-1i" && x.Facts["imported.sample"] == "1" {
			trial = x
		}
	}
	tools := filepath.Join(dir, "1-tcp_rr-64B-1i", "sample1", "tools-default")
	for to, from := range map[string]string{
		"node:worker0/pidstat/csv/cpu_usage_percent_cpu.csv":                                          "pidstat.csv",
		"node:worker0/mpstat/csv/cpu0_cpu0.csv":                                                       "mpstat-cpu0.csv",
		"node:worker0/mpstat/csv/cpu1_cpu1.csv":                                                       "mpstat-cpu1.csv",
		"node:worker0/iostat/csv/disk_Utilization_percent.csv":                                        "iostat-Utilization_percent.csv",
		"node:worker0/iostat/csv/disk_Throughput_MB_per_sec.csv":                                      "iostat-Throughput_MB_per_sec.csv",
		"node:worker0/cpuacct/csv/cgroup_cpuacct_machine.slice_machine-qemu-vm1.csv":                  "cpuacct-vm1.csv",
		"node:worker0/cpuacct/csv/cgroup_cpuacct_machine.slice_machine-qemu-vm1_vcpu0.csv":            "cpuacct-vm1_vcpu0.csv",
		"node:worker0/cpuacct/csv/cgroup_cpuacct_machine.slice_machine-qemu-vm1_vcpu1.csv":            "cpuacct-vm1_vcpu1.csv",
		"node:worker0/cpuacct/csv/cgroup_cpuacct_machine.slice_machine-qemu-vm1_emulator.csv":         "cpuacct-vm1_emulator.csv",
		"inside/sar/csv/per_cpu_cpu_00.csv":                                                           "sar-cpu_00.csv",
		"inside/sar/csv/per_cpu_cpu_01.csv":                                                           "sar-cpu_01.csv",
		"inside/sar/csv/network_l2_network_Mbits_sec.csv":                                             "sar-network_Mbits.csv",
		"worker0-of-another-name-that-is-no-end's/pidstat/csv/cpu_usage_percent_cpu.csv":              "pidstat.csv",
		"worker0-of-another-name-that-is-no-end's/proc-vmstat/csv/proc-vmstat_workingset.csv-that-is": "mpstat-cpu0.csv",
	} {
		step := time.Second
		if strings.HasPrefix(from, "iostat") { // four rows are to reach over most of the trial
			step = 2 * time.Second
		}
		placed(t, from, filepath.Join(tools, to), trial.Start, step)
	}
	return dir, trial
}

// TestEnds: what tools say of an endpoint's machines has the collectors' names, and the
// figures are those of the files.
func TestEnds(t *testing.T) {
	dir, plain := host(t)
	m, err := ParseMapping(filepath.Join(filepath.Dir(dir), "m.yaml"), []byte(`
trees: [{dir: kata, sandbox: vm, levels: {default_vcpus: 2}, quota: 1.25}]
ends: {server: {host: worker0, guest: inside, process: f20-1, cgroup: qemu-vm1, link: 25Gbit/s}}
`))
	if err != nil {
		t.Fatal(err)
	}
	set, err := Read(m.Trees, m.Endpoints)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(set.Trials, func(x imports.Trial) bool {
		return x.Facts["imported.iteration"] == "1-tcp_rr-64B-1i" && x.Facts["imported.sample"] == "1"
	})
	x := &set.Trials[at]
	if x.Levels["default_vcpus"] != "2" || x.Levels["sandbox"] != "vm" {
		t.Errorf("%v", x.Levels)
	}
	s := plain.Duration.Seconds()
	vcpu := max(column(t, "cpuacct-vm1_vcpu0.csv", s, any1), column(t, "cpuacct-vm1_vcpu1.csv", s, any1))
	idle := []float64{column(t, "sar-cpu_00.csv", s, exactly("idle")) + column(t, "sar-cpu_00.csv", s, exactly("iowait")),
		column(t, "sar-cpu_01.csv", s, exactly("idle")) + column(t, "sar-cpu_01.csv", s, exactly("iowait"))}
	rx := func(n string) bool { return strings.HasSuffix(n, "-rx") && n != "lo-rx" }
	for id, want := range map[string]float64{
		"cpu_time_rate end=server,role=vcpu":  column(t, "pidstat.csv", s, exactly("23247-KVMguest--f20-1")) / 100,
		"cpu_time_rate end=server,role=vhost": column(t, "pidstat.csv", s, func(n string) bool { return strings.HasSuffix(n, "vhost-23247") }) / 100,
		"cgroup_cpu_rate end=server":          column(t, "cpuacct-vm1.csv", s, any1),
		"thread_busiest end=server,role=vcpu": vcpu,
		"cpu_quota_mean end=server":           1.25,
		"link_rate_mean end=server":           25e9 / 8,
		"link_received_rate end=server":       column(t, "sar-network_Mbits.csv", s, rx) * 1e6 / 8,
		"guest_busiest end=server":            1 - min(idle[0], idle[1])/100,
		"guest_cores end=server,mode=softirq": (column(t, "sar-cpu_00.csv", s, exactly("soft")) + column(t, "sar-cpu_01.csv", s, exactly("soft"))) / 100,
		"system_cpu_rate mode=idle":           (column(t, "mpstat-cpu0.csv", s, exactly("idle")) + column(t, "mpstat-cpu1.csv", s, exactly("idle"))) / 100,
		"device_read_rate device=sdc":         column(t, "iostat-Throughput_MB_per_sec.csv", 3, exactly("sdc-read")) * (1 << 20),
	} {
		name, labels, _ := strings.Cut(id, " ")
		found := false
		for _, p := range x.Samples {
			if p.Name == name && string(p.Labels) == labels {
				found = true
				if math.Abs(p.Value-want) > 0.01*math.Abs(want)+1e-6 {
					t.Errorf("%s: %g, by hand %g", id, p.Value, want)
				}
			}
		}
		if !found {
			t.Errorf("no %s", id)
		}
	}
	for _, p := range x.Series {
		if p.Labels.Get("thread") == "vhost-23418" {
			t.Error("a thread of the other machine is this one's")
		}
	}
	if got := warnings(x); !strings.Contains(got, "a virtual machine ran on worker0-of-another-name-that-is-no-end's") || strings.Contains(got, "all of them count") {
		t.Errorf("%s", got)
	}
}

func warnings(x *imports.Trial) string {
	var all []string
	for _, w := range x.Warnings {
		all = append(all, w.Text)
	}
	return strings.Join(all, "\n")
}

// TestSeveralMachines: where the host has two and none is named, both count, and it
// is said.
func TestSeveralMachines(t *testing.T) {
	dir, plain := host(t)
	set, err := Read([]Tree{{Dir: dir, Sandbox: "vm"}}, map[string]Endpoint{"server": {Host: "worker0"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range set.Trials {
		x := &set.Trials[i]
		if x.Facts["imported.iteration"] != "1-tcp_rr-64B-1i" || x.Facts["imported.sample"] != "1" {
			continue
		}
		if !strings.Contains(warnings(x), "2 virtual machines ran on node:worker0, and all of them count as the server's") {
			t.Errorf("%s", warnings(x))
		}
		want := column(t, "pidstat.csv", plain.Duration.Seconds(), func(n string) bool { return strings.Contains(n, "KVMguest") }) / 100
		for _, p := range x.Samples {
			if p.Name == "cpu_time_rate" && p.Labels.Get("role") == "vcpu" && math.Abs(p.Value-want) > 0.01*want {
				t.Errorf("%g, by hand %g", p.Value, want)
			}
			if p.Name == "guest_busiest" {
				t.Error("nobody said which machine is the guest")
			}
		}
	}
}

// TestRoles: columns as pidstat has them, with and without threads.
func TestRoles(t *testing.T) {
	for column, want := range map[string]string{
		"23247-KVMguest--f20-1": "vmm", "7-/usr/libexec/qemu-kvm_-name_guest=a": "vmm", "23294-vhost-23247": "vhost",
		"10:12-CPU_0/KVM": "vcpu", "10:13-IO_iothread1": "iothread", "9-/usr/libexec/virtiofsd_--fd=3": "virtiofsd",
		"1-/usr/lib/systemd/systemd_--switched-root": "", "80-uperf": "workload", "81-uperf_-m_x.xml": "workload", "82-uperfect": "",
		"90-runsc-sandbox_--root=/run": "sentry", "91-runsc-gofer": "gofer", "1183-kvm-irqfd-clean": "",
	} {
		p, ok := parseProcess(column)
		if got := p.role("uperf"); !ok || string(got) != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
	if _, ok := parseProcess("timestamp_ms"); ok {
		t.Error("no process")
	}
}

func TestMappingErrors(t *testing.T) {
	for text, want := range map[string]string{
		"tree: []":                                              "m.yaml: unmarshal errors",
		"trees: [{sandbox: x}]":                                 "m.yaml: tree 1 has no dir",
		"trees: [{dir: x, quota: -1}]":                          "is not a number of cores",
		"trees: [{dir: x, levels: {sandbox: y}}]":               "sandbox cannot be a level of a tree",
		"ends: {server: {process: x}}":                          "the end server has no host and no guest",
		"ends: {Server Side: {host: x}}":                        `unknown end "Server Side"`,
		"ends: {server: {host: x, link: 25 parsecs}}":           `cannot read the rate "25 parsecs"`,
		"ends: {server: {host: x, link: 25s}}":                  `cannot read the rate "25s"`,
		"trees: [{dir: x, levels: {'a b': '1'}}]":               `"a b" cannot name a factor`,
		strings.Repeat("#", imports.MaxMapping) + "\ntrees: []": "write at most",
	} {
		if _, err := ParseMapping("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// TestCounter: rates before the start count for nothing, and the first row of all
// is of an unknown stretch of time.
func TestCounter(t *testing.T) {
	table, err := parseTable([]byte("timestamp_ms,a,b\n1000,100,x\n3000,50,10\n5000,100,-1\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := table.counter(record.Series{}, []int{0, 1}, 0.01, time.UnixMilli(2000))
	if want := []float64{0, 0.6, 2.6}; !slices.EqualFunc(s.V, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) ||
		!slices.Equal(s.T, []time.Duration{0, time.Second, 3 * time.Second}) {
		t.Errorf("%v %v", s.T, s.V)
	}
	if s := table.counter(record.Series{}, []int{0}, 0.01, time.Time{}); len(s.V) != 3 || s.V[1] != 1 || s.V[0] != 0 {
		t.Errorf("%v", s.V)
	}
	for _, bad := range []string{"", "x,y\n", "timestamp_ms\n1\n", "timestamp_ms,a\n2,1\n1,1\n", "timestamp_ms,a\nNaN,1\n"} {
		if _, err := parseTable([]byte(bad)); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}
