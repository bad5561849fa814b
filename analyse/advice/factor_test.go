package advice

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

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
		{"io_threads", "none", record.FamilyVM, []string{"ioThreadsPolicy: null", "without iothreads", "no -object iothread"}},
		{"io_threads", "0", record.FamilyVM, []string{"ioThreadsPolicy: null", "without iothreads", "no -object iothread"}},
		{"directfs", "false", record.FamilyGVisor, []string{`directfs = "false"`, "runsc --directfs=false run"}},
		{"overlay2", "default", record.FamilyGVisor, []string{"# without overlay2", "runsc run"}},
		{"file-access-mounts", "exclusive", record.FamilyGVisor, []string{`file-access-mounts = "exclusive"`, "runsc --file-access-mounts=exclusive run"}},
		{"directfs", "false", record.FamilyVM, nil},
		{"jobs", "4", record.FamilyVM, nil},
	} {
		got := PatchesOf(c.factor, c.level, c.family)
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

// TestJoin: settings of several factors that go into one file are one patch.
func TestJoin(t *testing.T) {
	var all []Patch
	for _, x := range [][2]string{{"overlay2", "none"}, {"file-access-mounts", "exclusive"}, {"directfs", "true"}} {
		all = append(all, PatchesOf(x[0], x[1], record.FamilyGVisor)...)
	}
	want := []Patch{
		{For: "runtime", File: "/etc/containerd/runsc.toml", Text: "[runsc_config]\n  overlay2 = \"none\"\n  file-access-mounts = \"exclusive\"\n  directfs = \"true\"\n"},
		{For: "shell", File: "command line of runsc", Text: "runsc --overlay2=none --file-access-mounts=exclusive --directfs=true run -bundle BUNDLE NAME"},
	}
	if d := cmp.Diff(want, Join(all)); d != "" {
		t.Error(d)
	}
	got := Join(append(PatchesOf("default_vcpus", "4", record.FamilyVM), PatchesOf("cpu-limit", "2", record.FamilyVM)...))
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

// TestJoinPairs: the joined manifests of any two factors are YAML without a key that is there twice.
func TestJoinPairs(t *testing.T) {
	for _, a := range loaded().Factors {
		for _, b := range loaded().Factors {
			for _, p := range Join(append(PatchesOf(a.Name, "2", ""), PatchesOf(b.Name, "2", "")...)) {
				var out any
				if err := yaml.Unmarshal([]byte(p.Text), &out); a.Name != b.Name && (p.For == "pod" || p.For == "kubevirt") && err != nil {
					t.Errorf("%s and %s: %v in\n%s", a.Name, b.Name, err, p.Text)
				}
			}
		}
	}
}
