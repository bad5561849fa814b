package host

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

var update = flag.Bool("update", false, "write testdata/here.json anew")

// TestCaptured describes a captured machine: two cores of a virtual machine
// without DMI.
func TestCaptured(t *testing.T) {
	h := Describe(context.Background(), "testdata/here", nil)
	got, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("testdata/here.json", got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/here.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestNothing: a host that hides everything is described without a guess.
func TestNothing(t *testing.T) {
	h := Describe(context.Background(), t.TempDir(), nil)
	if !strings.Contains(h.KVM, "missing") {
		t.Errorf("KVM = %q", h.KVM)
	}
	h.KVM, h.Arch, h.Tools = "", "", nil
	if d := cmp.Diff(record.Host{}, h); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestHere only asks for what every Linux host tells.
func TestHere(t *testing.T) {
	h := Describe(context.Background(), "/", nil)
	if h.Kernel == "" || h.Threads == 0 || h.MemoryBytes < 1<<26 || h.KVM == "" || h.Arch == "" {
		t.Errorf("%+v", h)
	}
}

// spoil copies the captured tree with some files replaced.
func spoil(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/here")); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWarnings(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	calm := Describe(context.Background(), "testdata/here", nil).Warnings
	for code, files := range map[string]map[string]string{
		"governor":  {cpu + "cpu0/cpufreq/scaling_governor": "powersave\n", cpu + "cpu1/cpufreq/scaling_governor": "performance\n"},
		"turbo":     {cpu + "intel_pstate/no_turbo": "0\n"},
		"smt":       {cpu + "cpu0/topology/core_cpus_list": "0-1\n", cpu + "cpu1/topology/core_cpus_list": "0-1\n"},
		"one-core":  {cpu + "cpu0/topology/core_cpus_list": "0\n", cpu + "cpu1/topology/physical_package_id": ""},
		"swap":      {"proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t2097148\t\t51200\t\t-2\n"},
		"load":      {"proc/loadavg": "1.01 0.20 0.18 1/94 9453\n"},
		"clock":     {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"},
		"throttled": {cpu + "cpu1/thermal_throttle/core_throttle_count": "3\n"},
		"rootless":  {"proc/self/uid_map": "         0       1000          1\n"},
		"steal":     {"proc/stat": "cpu  1000 0 0 198676 393 0 0 11 0 0\n"},
	} {
		t.Run(code, func(t *testing.T) {
			is := func(w record.Warning) bool { return w.Code == code }
			if slices.ContainsFunc(calm, is) {
				t.Fatal("the captured machine has this warning, too")
			}
			got := Describe(context.Background(), spoil(t, files), nil).Warnings
			if !slices.ContainsFunc(got, is) {
				t.Errorf("not warned: %v", got)
			}
			for _, w := range got {
				if w.Text == "" {
					t.Errorf("%s has no text", w.Code)
				}
			}
		})
	}
	has := func(code string) bool {
		return slices.ContainsFunc(calm, func(w record.Warning) bool { return w.Code == code })
	}
	if !has("virtual") || !has("mitigations") {
		t.Errorf("the captured machine is virtual and partly vulnerable: %v", calm)
	}
}

func TestVirtualization(t *testing.T) {
	const x86, guest = "flags\t\t: fpu vme\n", "flags\t\t: fpu hypervisor vme\n"
	for want, h := range map[string]hints{
		"none":      {cpuinfo: x86, dmi: []string{"Dell Inc.", "PowerEdge R650"}, clocksources: "tsc hpet acpi_pm"},
		"kvm":       {cpuinfo: guest, clocksources: "tsc kvm-clock"},
		"qemu":      {cpuinfo: guest, dmi: []string{"QEMU", "Standard PC (Q35 + ICH9, 2009)"}},
		"amazon":    {cpuinfo: guest, dmi: []string{"Amazon EC2", "m7i.large"}, clocksources: "tsc kvm-clock"},
		"vmware":    {cpuinfo: guest, dmi: []string{"VMware, Inc.", "VMware20,1"}},
		"microsoft": {cpuinfo: guest, dmi: []string{"Microsoft Corporation", "Virtual Machine"}},
		"xen":       {cpuinfo: guest, hypervisor: "xen"},
		"unknown":   {cpuinfo: guest},
		"":          {cpuinfo: "processor\t: 0\nCPU part\t: 0xd0c\n"},
		"apple":     {cpuinfo: "CPU part\t: 0\n", dmi: []string{"Apple Inc.", "Apple Virtualization Generic Platform"}},
	} {
		if got := virtualization(h); got != want {
			t.Errorf("virtualization(%+v) = %q, want %q", h, got, want)
		}
	}
}

func TestParsers(t *testing.T) {
	if got := osName("NAME=x\nPRETTY_NAME='Alpine Linux v3.20'\n"); got != "Alpine Linux v3.20" {
		t.Errorf("osName = %q", got)
	}
	for in, want := range map[string]string{
		"31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n":                                                             "v2",
		"33 31 0:30 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n":                                              "v1",
		"41 31 0:38 / /u rw - cgroup2 cgroup2 rw\n40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n": "hybrid",
		"27 1 254:0 / / rw - ext4 /dev/vda rw\n":                                                                            "",
	} {
		if got := cgroupMode(in); got != want {
			t.Errorf("cgroupMode(%q) = %q, want %q", in, got, want)
		}
	}
	arm := "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU implementer\t: 0x41\n"
	if got := cpuModel(arm); got != "implementer 0x41 part 0xd0c" {
		t.Errorf("cpuModel = %q", got)
	}
	if s, c, n := cpuinfoTopology(arm); s != 0 || c != 0 || n != 2 {
		t.Errorf("cpuinfoTopology = %d %d %d", s, c, n)
	}
	two := "processor : 0\nphysical id : 0\ncore id : 0\nprocessor : 1\nphysical id : 0\ncore id : 0\nprocessor : 2\nphysical id : 1\ncore id : 0\n"
	if s, c, n := cpuinfoTopology(two); s != 2 || c != 2 || n != 3 {
		t.Errorf("cpuinfoTopology = %d %d %d", s, c, n)
	}
}

// script writes a tool.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTools(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh")
	}
	tools := []Tool{
		{Name: "runc", Path: script(t, `test "$1" = --version && cat <<'X'

runc version 1.1.5+ds1
commit: 1.1.5+ds1-1+deb12u1
X`)},
		{Name: "own", Path: script(t, `echo "v$1" >&2`), Args: []string{"3"}},
		{Name: "endless", Path: script(t, `echo first; head -c 1000000 /dev/zero | tr '\0' x`)},
		{Name: "broken", Path: script(t, "echo no such thing; exit 3")},
		{Name: "mute", Path: script(t, "")},
		{Name: "missing-tool-of-tare"},
	}
	h := Describe(context.Background(), t.TempDir(), tools)
	want := map[string]string{"runc": "runc version 1.1.5+ds1", "own": "v3", "endless": "first", "broken": "", "mute": ""}
	if d := cmp.Diff(want, h.Tools); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var text []string
	for _, w := range h.Warnings {
		text = append(text, w.Code+" "+w.Text)
	}
	all := strings.Join(text, "\n")
	if len(text) != 2 || !strings.Contains(all, "version of broken") || !strings.Contains(all, "no such thing") || !strings.Contains(all, "printed nothing") {
		t.Errorf("warnings:\n%s", all)
	}
}

// TestToolHangs: neither a tool nor a child that it leaves behind holds us up.
func TestToolHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	v, err := version(ctx, script(t, "sleep 20 & exec sleep 20"), nil)
	if err == nil || v != "" || time.Since(start) > 15*time.Second {
		t.Errorf("version = %q, %v after %v", v, err, time.Since(start))
	}
}

func TestKVMIsNotAnyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kvm")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tryKVM(path); !strings.Contains(got, "not KVM") {
		t.Errorf("tryKVM = %q", got)
	}
}

func FuzzParsers(f *testing.F) {
	for _, name := range []string{"proc/cpuinfo", "proc/meminfo", "proc/swaps", "proc/stat", "proc/loadavg", "proc/self/mountinfo", "etc/os-release"} {
		b, err := os.ReadFile(filepath.Join("testdata/here", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("/dev/sda2 partition 2097148 9223372036854775807 -2")
	f.Fuzz(func(t *testing.T, s string) {
		if n := meminfo(s, "MemTotal"); n < 0 {
			t.Errorf("meminfo %d", n)
		}
		if n := swapUsed(s); n < 0 {
			t.Errorf("swapUsed %d", n)
		}
		if x := load1(s); !(x >= 0) {
			t.Errorf("load1 %v", x)
		}
		if x := stealShare(s); !(x >= 0) {
			t.Errorf("stealShare %v", x)
		}
		if a, b, c := cpuinfoTopology(s); a < 0 || b < 0 || c < 0 || b > c+len(s) {
			t.Errorf("topology %d %d %d", a, b, c)
		}
		cgroupMode(s)
		osName(s)
		cpuModel(s)
		virtualization(hints{cpuinfo: s})
		if l := firstLine([]byte(s)); len(l) > toolLine || strings.ContainsRune(l, '\n') {
			t.Errorf("firstLine %q", l)
		}
	})
}
