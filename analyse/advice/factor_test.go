package advice

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kv "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"tare/record"
)

// TestPatchesOf: a level is set where its factor is, in the sandboxes that have it; none and 0 are one level.
func TestPatchesOf(t *testing.T) {
	for _, c := range []struct {
		factor, level string
		family        record.Family
		want          []string // in the patches, one after another
	}{
		{"io_threads", "4", record.FamilyVM, []string{"supplementalPoolThreadCount: 4", "<iothreads>4</iothreads>", `"num-queues": 4`}},
		{"io_threads", "none", record.FamilyVM, []string{"ioThreads: null", "without iothreads", "no -object iothread"}},
		{"io_threads", "0", record.FamilyVM, []string{"ioThreads: null", "without iothreads", "no -object iothread"}},
		{"disk_queues", "4", record.FamilyVM, []string{`block_device_num_queues: "4"`, "blockMultiQueue: true", "<driver queues='4'/>", "num-queues=4"}},
		{"disk_queues", "1", record.FamilyVM, []string{`block_device_num_queues: "1"`, "blockMultiQueue: null", "<driver queues='1'/>", "num-queues=1"}},
		{"disk_queues", "auto", record.FamilyVM, []string{`block_device_num_queues: "VCPUS"`, "blockMultiQueue: true", "no queues", "without num-queues"}},
		{"supplemental-pool-thread-count", "4", record.FamilyVM, []string{"supplementalPoolThreadCount: 4"}},
		{"supplemental-pool-thread-count", "0", record.FamilyVM, []string{"ioThreads: null"}},
		{"block-multi-queue", "true", record.FamilyVM, []string{"blockMultiQueue: true"}},
		{"io_threads_pinned", "true", record.FamilyVM, []string{"dedicatedCpuPlacement: true", "<iothreadpin iothread='N' cpuset='CPU'/>", "cannot pin", "taskset -cp CPU"}},
		{"io_threads_pinned", "false", record.FamilyVM, []string{"dedicatedCpuPlacement: null", "no iothreadpin", "cannot pin", "no taskset"}},
		{"directfs", "false", record.FamilyGVisor, []string{`directfs = "false"`, "runsc --directfs=false run"}},
		{"overlay2", "default", record.FamilyGVisor, []string{"# without overlay2", "runsc run"}},
		{"file-access-mounts", "exclusive", record.FamilyGVisor, []string{`file-access-mounts = "exclusive"`, "runsc --file-access-mounts=exclusive run"}},
		{"directfs", "false", record.FamilyVM, nil},
		{"jobs", "4", record.FamilyVM, nil},
	} {
		got := PatchesOf(c.factor, c.level, c.family, nil)
		if len(got) != len(c.want) {
			t.Errorf("%s %s: %+v, want %d", c.factor, c.level, got, len(c.want))
			continue
		}
		for i, p := range got {
			if !strings.Contains(p.Text, c.want[i]) {
				t.Errorf("%s %s: %q does not say %q", c.factor, c.level, p.Text, c.want[i])
			}
		}
	}
}

// TestCare: levels that keep writes in the sandbox, or hide the host's from it, say so; their patches too.
func TestCare(t *testing.T) {
	for _, c := range []struct{ factor, level, want string }{
		{"overlay2", "all:memory", "overlay2 all:memory: nothing that the sandbox writes to a volume or to its root reaches the host; it takes the sandbox's memory"},
		{"overlay2", "all:self", "nothing that the sandbox writes to a volume"},
		{"overlay2", "root:memory", "it takes the sandbox's memory"},
		{"overlay2", "root:self", "lost with the sandbox"},
		{"file-access-mounts", "exclusive", "does not see what others change in its volumes"},
		{"overlay2", "none", ""}, {"overlay2", "default", ""}, {"file-access-mounts", "shared", ""}, {"directfs", "false", ""},
	} {
		care := CareOf(record.Cell{{Factor: c.factor, Value: c.level}})
		if (len(care) == 0) != (c.want == "") || !strings.Contains(strings.Join(care, ""), c.want) {
			t.Errorf("%s %s: %q, want %q", c.factor, c.level, care, c.want)
		}
		plain := PatchesOf(c.factor, c.level, record.FamilyGVisor, nil)
		for i, p := range Careful(plain, care) {
			if has := strings.HasPrefix(p.Text, "# take care: "+c.factor+" "+c.level); has != (c.want != "") || !strings.HasSuffix(p.Text, plain[i].Text) {
				t.Errorf("%s %s: %q", c.factor, c.level, p.Text)
			}
		}
	}
}

// TestJoin: settings of several factors that go into one file are one patch.
func TestJoin(t *testing.T) {
	var all []Patch
	for _, x := range [][2]string{{"overlay2", "none"}, {"file-access-mounts", "exclusive"}, {"directfs", "true"}} {
		all = append(all, PatchesOf(x[0], x[1], record.FamilyGVisor, nil)...)
	}
	want := []Patch{
		{For: "runtime", File: "/etc/containerd/runsc.toml", Text: "[runsc_config]\n  overlay2 = \"none\"\n  file-access-mounts = \"exclusive\"\n  directfs = \"true\"\n"},
		{For: "shell", File: "command line of runsc", Text: "runsc --overlay2=none --file-access-mounts=exclusive --directfs=true run -bundle BUNDLE NAME"},
	}
	if d := cmp.Diff(want, Join(all)); d != "" {
		t.Error(d)
	}
	got := Join(append(PatchesOf("default_vcpus", "4", record.FamilyVM, nil), PatchesOf("cpu-limit", "2", record.FamilyVM, nil)...))
	const pod = `spec:
  template:
    metadata:
      annotations:
        io.katacontainers.config.hypervisor.default_vcpus: "4"
    spec:
      containers:
        - name: APP
          resources:
            limits:
              cpu: "2"
`
	if i := slices.IndexFunc(got, func(p Patch) bool { return p.For == "pod" }); got[i].Text != pod || len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestJoinPairs: the joined manifests of any two factors are YAML without a key that is there twice, and KubeVirt's API has all of their fields.
// What goes into libvirt's domain is XML.
func TestJoinPairs(t *testing.T) {
	levels := func(factor string) []string {
		switch factor {
		case "io_threads":
			return []string{"none", "2"}
		case "disk_queues":
			return []string{"auto", "1", "2"}
		case "supplemental-pool-thread-count":
			return []string{"0", "2"}
		case "io_threads_pinned", "block-multi-queue":
			return []string{"true", "false"}
		}
		return []string{"2"}
	}
	var all [][]Patch
	for i, a := range loaded().Factors {
		for _, la := range levels(a.Name) {
			for _, b := range loaded().Factors[i+1:] {
				for _, lb := range levels(b.Name) {
					all = append(all, Join(append(PatchesOf(a.Name, la, "", nil), PatchesOf(b.Name, lb, "", nil)...)))
				}
			}
		}
	}
	for _, p := range slices.Concat(all...) {
		var err error
		switch {
		case p.For == "pod":
			err = yaml.UnmarshalStrict([]byte(p.Text), new(any))
		case p.For == "kubevirt":
			err = yaml.UnmarshalStrict([]byte(p.Text), &kv.VirtualMachine{})
		case strings.Contains(p.File, "libvirt"):
			err = xml.Unmarshal([]byte("<domain>"+p.Text+"</domain>"), new(struct{}))
		}
		if err != nil {
			t.Errorf("%s: %v in\n%s", p.File, err, p.Text)
		}
	}
}

// TestPatchQueues: a disk has the queues that the measured cell had, else one for each thread.
func TestPatchQueues(t *testing.T) {
	for cell, want := range map[string]string{"": "2", "auto": "2", "8": "8"} {
		for _, p := range PatchesOf("io_threads", "2", record.FamilyVM, record.Cell{{Factor: "disk_queues", Value: cell}}) {
			if p.For == "runtime" && !strings.Contains(p.Text, "queues='"+want+"'") || p.For == "shell" && !strings.Contains(p.Text, `"num-queues": `+want+",") {
				t.Errorf("disk_queues %q:\n%s", cell, p.Text)
			}
		}
	}
}

// TestJoinThreads: with I/O threads, their queues and their processors, KubeVirt's manifest has all three.
func TestJoinThreads(t *testing.T) {
	for _, x := range []struct{ factor, level string }{{"disk_queues", "4"}, {"disk_queues", "1"}, {"disk_queues", "auto"}, {"io_threads_pinned", "true"}, {"io_threads_pinned", "false"}} {
		for _, p := range Join(append(PatchesOf("io_threads", "4", "", nil), PatchesOf(x.factor, x.level, "", nil)...)) {
			m := kv.VirtualMachine{Spec: kv.VirtualMachineSpec{Template: &kv.VirtualMachineInstanceTemplateSpec{}}}
			if p.For != "kubevirt" {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(p.Text), &m); err != nil {
				t.Fatalf("%v in\n%s", err, p.Text)
			}
			d := m.Spec.Template.Spec.Domain
			queues := d.Devices.BlockMultiQueue != nil && *d.Devices.BlockMultiQueue
			if got := *d.IOThreads.SupplementalPoolThreadCount; got != 4 || queues != (x.level != "1") || (d.CPU != nil && d.CPU.DedicatedCPUPlacement) != (x.level == "true") {
				t.Errorf("%s %s with 4 threads:\n%s", x.factor, x.level, p.Text)
			}
		}
	}
}
