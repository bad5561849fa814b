package sizing_test

import (
	"encoding/csv"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"

	"tare/sizing"
)

// fromManifest is the pod of a manifest that has one.
func fromManifest(in io.Reader, r sizing.Runtime) (sizing.Pod, sizing.Runtime, error) {
	all, err := sizing.FromManifest(in, r)
	if err != nil {
		return sizing.Pod{}, r, err
	}
	return all[0].Pod, all[0].Runtime, nil
}

func cores(t *testing.T, text string) float64 {
	t.Helper()
	if text == "none" {
		return 0
	}
	q, err := sizing.ParseQuantity(text)
	if err != nil {
		t.Fatal(err)
	}
	return q.AsApproximateFloat64()
}

// TestPublished reproduces the published table of vCPUs (OpenShift sandboxed
// containers, Kata 2.1).
func TestPublished(t *testing.T) {
	f, err := os.Open("testdata/sandbox_sizing.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatal(len(rows), err)
	}
	for _, row := range rows[1:] {
		boot, _ := strconv.Atoi(row[2])
		got, err := sizing.Of(sizing.Pod{CPULimit: cores(t, row[0]), CPURequest: cores(t, row[1])}, sizing.Runtime{VCPUs: boot})
		if err != nil {
			t.Fatal(row, err)
		}
		if want, _ := strconv.Atoi(row[3]); got.VCPUsTotal != want || got.VCPUsBoot != boot {
			t.Errorf("limit %s, request %s, default_vcpus %s: %+v, want %d vCPUs", row[0], row[1], row[2], got, want)
		}
	}
}

func TestOf(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		pod  sizing.Pod
		rt   sizing.Runtime
		want sizing.Size
	}{
		"nothing asked": {want: sizing.Size{VCPUsBoot: 1, VCPUsTotal: 1, MemoryBoot: 2 * gib, MemoryBytes: 2 * gib, NetworkThreads: 1}},
		"2500m and 8Gi": {sizing.Pod{CPULimit: 2.5, MemoryLimit: 8 * gib}, sizing.Runtime{},
			sizing.Size{1, 3, 4, 2 * gib, 10 * gib, 2.75, 1}},
		"a sum of floats": {sizing.Pod{CPULimit: 0.1 + 0.2 + 0.7}, sizing.Runtime{},
			sizing.Size{1, 1, 2, 2 * gib, 2 * gib, 1.25, 1}},
		"no quota": {sizing.Pod{CPULimit: 2, Unbounded: true}, sizing.Runtime{VCPUs: 3},
			sizing.Size{3, 2, 5, 2 * gib, 2 * gib, 0, 3}},
		"all of the host": {sizing.Pod{CPULimit: 2}, sizing.Runtime{VCPUs: -1, HostCPUs: 8, MemoryMiB: 512},
			sizing.Size{8, 0, 8, gib / 2, gib / 2, 2.25, 8}},
		"more than the host": {sizing.Pod{CPULimit: 6}, sizing.Runtime{VCPUs: 4, HostCPUs: 8},
			sizing.Size{4, 4, 8, 2 * gib, 2 * gib, 6.25, 4}},
	} {
		got, err := sizing.Of(c.pod, c.rt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
		if n := len(sizing.Rules(c.pod, c.rt, got)); n != 6 {
			t.Errorf("%s: %d rules", name, n)
		}
	}
}

// TestRS has the examples of Kata's docs/how-to/how-to-size-sandbox-overhead-runtime-rs.md (1 to 4), and
// the cases of its initial_size.rs.
func TestRS(t *testing.T) {
	const mib = 1 << 20
	doc := sizing.Runtime{Flavour: sizing.RS, VCPUs: 2, MemoryMiB: 1024, OverheadVCPUs: 0.5, OverheadMiB: 128}
	zero := sizing.Runtime{Flavour: sizing.RS, VCPUs: 2, MemoryMiB: 1024}
	usual := sizing.Runtime{Flavour: sizing.RS, OverheadVCPUs: sizing.DefaultOverheadVCPUs, OverheadMiB: sizing.DefaultOverheadMiB}
	for name, c := range map[string]struct {
		pod   sizing.Pod
		rt    sizing.Runtime
		vcpus int
		mib   int64
		quota float64
		rule  string // of the vCPUs
	}{
		"1, both limits":     {sizing.Pod{CPULimit: 1.5, MemoryLimit: 600 * mib}, doc, 2, 728, 1.75, "CPU limit 1.5 cores and overhead_vcpus 0.5"},
		"2A, memory only":    {sizing.Pod{MemoryLimit: 512 * mib}, doc, 1, 640, 0, "no CPU limit: overhead_vcpus 0.5"},
		"2B, CPU only":       {sizing.Pod{CPULimit: 1.5}, doc, 2, 128, 1.75, "CPU limit 1.5"},
		"3A, no overhead":    {sizing.Pod{CPULimit: 1.5, MemoryLimit: 600 * mib}, zero, 2, 600, 1.75, "overhead_vcpus 0,"},
		"3B, 4, no limits":   {sizing.Pod{}, doc, 2, 1024, 0, "because the pod has no limit"},
		"a host's bound":     {sizing.Pod{CPULimit: 4, MemoryLimit: 512 * mib}, sizing.Runtime{Flavour: sizing.RS, HostCPUs: 2, OverheadMiB: 32}, 4, 544, 4.25, "CPU limit 4 cores"},
		"in 32 bits":         {sizing.Pod{CPULimit: 1.8, MemoryLimit: 512 * mib}, usual, 2, 544, 2.05, "CPU limit 1.8"},
		"pages of 2 MiB":     {sizing.Pod{CPULimit: 0.5, MemoryLimit: 301*mib + 5}, usual, 1, 334, 0.75, "CPU limit 0.5"},
		"the request is not": {sizing.Pod{CPURequest: 3}, usual, 1, 2048, 0, "default_vcpus"},
	} {
		got, err := sizing.Of(c.pod, c.rt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(sizing.Size{c.vcpus, 0, c.vcpus, c.mib * mib, c.mib * mib, c.quota, 1}, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
		if r := sizing.Rules(c.pod, c.rt, got)[0].Rule; !strings.Contains(r, c.rule) {
			t.Errorf("%s: %q, want %q", name, r, c.rule)
		}
	}
}

// TestFlavourOf: kata-deploy's names tell the runtime, with a suffix too; others do not.
func TestFlavourOf(t *testing.T) {
	for want, handlers := range map[sizing.Flavour][]string{
		sizing.RS: {"kata-qemu-runtime-rs", "kata-clh-runtime-rs", "kata-dragonball", "kata-qemu-runtime-rs-blue", "kata-dragonball-debug"},
		sizing.Go: {"kata-qemu", "kata-clh", "kata-fc", "kata-qemu-coco-dev", "kata-qemu-blue"},
		"":        {"", "kata", "kata-containers", "kata-runtime", "kata-qemux", "runc", "runsc", "qemu", "qemu-runtime-rs"},
	} {
		for _, h := range handlers {
			if got := sizing.FlavourOf(h); got != want {
				t.Errorf("%q: %q, want %q", h, got, want)
			}
		}
	}
}

// TestManifestNamesRuntime: a pod's RuntimeClass chooses the rule, unless the user has.
func TestManifestNamesRuntime(t *testing.T) {
	for _, c := range []struct {
		class       string
		given, want sizing.Flavour
	}{{"kata-qemu-runtime-rs", "", sizing.RS}, {"kata-qemu-runtime-rs", sizing.Go, sizing.Go}, {"kata-qemu", "", sizing.Go}, {"kata", "", ""}} {
		text := "kind: Pod\nspec: {runtimeClassName: " + c.class + ", containers: [{name: web}]}\n"
		got, err := sizing.FromManifest(strings.NewReader(text), sizing.Runtime{VCPUs: 1, Flavour: c.given})
		if err != nil || len(got) != 1 || got[0].Class != c.class || got[0].Runtime.Flavour != c.want {
			t.Errorf("%s: %+v, %v; want %q", c.class, got, err, c.want)
		}
	}
}

// TestRules: what bounds a figure, and whose it is, is said.
func TestRules(t *testing.T) {
	for want, rt := range map[string]sizing.Runtime{
		"default_vcpus": {VCPUs: 2, HostCPUs: 2},
		"default_vcpus 64, but at most the host's 2":           {VCPUs: 64, HostCPUs: 2},
		"default_vcpus -1: all of the host's 8":                {VCPUs: -1, HostCPUs: 8},
		"annotation default_vcpus 3, but at most the host's 2": {VCPUs: 3, HostCPUs: 2, VCPUsAnnotated: true},
	} {
		s, err := sizing.Of(sizing.Pod{}, rt)
		if err != nil {
			t.Fatal(err)
		}
		if got := sizing.Rules(sizing.Pod{}, rt, s)[0].Rule; got != want {
			t.Errorf("%+v: %q, want %q", rt, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		pod sizing.Pod
		rt  sizing.Runtime
	}{
		"negative":     {pod: sizing.Pod{CPULimit: -1}},
		"no runtime":   {rt: sizing.Runtime{Flavour: "c"}},
		"no memory":    {pod: sizing.Pod{CPULimit: 1}, rt: sizing.Runtime{Flavour: sizing.RS}}, // as runtime-rs refuses it
		"overhead":     {rt: sizing.Runtime{OverheadVCPUs: math.NaN()}},
		"overhead MiB": {rt: sizing.Runtime{OverheadMiB: -1}},
		"no number":    {pod: sizing.Pod{CPULimit: math.NaN()}},
		"endless":      {pod: sizing.Pod{CPURequest: math.Inf(1)}},
		"all of what?": {rt: sizing.Runtime{VCPUs: -1}},
		"memory":       {pod: sizing.Pod{MemoryLimit: -1}},
		"too small":    {pod: sizing.Pod{CPULimit: 0.001}},
		"too large":    {pod: sizing.Pod{CPULimit: 8193}},
		"no boot":      {rt: sizing.Runtime{MemoryMiB: 191}},
		"huge boot":    {rt: sizing.Runtime{MemoryMiB: sizing.MostMemoryMiB + 1}},
		"no overhead":  {rt: sizing.Runtime{OverheadGiven: true, Overhead: -1}},
		"no host":      {rt: sizing.Runtime{HostCPUs: -3}},
	} {
		if got, err := sizing.Of(c.pod, c.rt); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestMonotone: more of a limit never gives a smaller machine or quota.
func TestMonotone(t *testing.T) {
	f := func(a, b uint16, boot uint8) bool {
		lo, hi := float64(min(a, b))/100, float64(max(a, b))/100
		rt := sizing.Runtime{VCPUs: int(boot) + 1}
		x, errX := sizing.Of(sizing.Pod{CPULimit: lo}, rt)
		y, errY := sizing.Of(sizing.Pod{CPULimit: hi}, rt)
		return errX == nil && errY == nil && x.VCPUsTotal <= y.VCPUsTotal && x.CPUQuotaCores <= y.CPUQuotaCores &&
			float64(y.VCPUsTotal) >= hi && y.VCPUsTotal == y.VCPUsBoot+y.VCPUsHotplugged
	}
	if err := quick.Check(f, nil); err != nil {
		t.Error(err)
	}
}

const pod = `apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    io.katacontainers.config.hypervisor.default_vcpus: "2"
    io.katacontainers.config.hypervisor.default_memory: "1024"
spec:
  runtimeClassName: kata
  initContainers:
  - {name: once, resources: {limits: {cpu: 1, memory: 1Gi}}}
  - {name: mesh, restartPolicy: Always, resources: {limits: {cpu: 500m, memory: 1Gi}}}
  containers:
  - name: web
    resources: {limits: {cpu: 2, memory: 4Gi}, requests: {cpu: 1}}
`

func TestManifest(t *testing.T) {
	for name, text := range map[string]string{
		"pod":      pod,
		"template": "kind: Deployment\nspec:\n  template:\n    " + strings.ReplaceAll(pod[strings.Index(pod, "metadata"):], "\n", "\n    "),
	} {
		p, r, err := fromManifest(strings.NewReader(text), sizing.Runtime{VCPUs: 1, HostCPUs: 64})
		if err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(sizing.Pod{CPULimit: 2.5, CPURequest: 1.5, MemoryLimit: 5 << 30}, p); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
		if want := (sizing.Runtime{VCPUs: 2, MemoryMiB: 1024, HostCPUs: 64, VCPUsAnnotated: true, MemoryAnnotated: true}); r != want {
			t.Errorf("%s: %+v, want %+v", name, r, want)
		}
	}
}

// TestPodLevel: what the pod as a whole has counts instead of the containers' sum, and its
// overhead instead of the runtime's.
func TestPodLevel(t *testing.T) {
	const gib = 1 << 30
	for spec, want := range map[string]struct {
		pod   sizing.Pod
		quota float64
	}{
		"resources: {limits: {cpu: 2, memory: 4Gi}}, containers: [{name: a}]":                                                               {sizing.Pod{2, 0, 4 * gib, false}, 2.25},
		"resources: {limits: {cpu: 2}, requests: {cpu: 1}}, containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}, {name: b}]": {sizing.Pod{2, 1, gib, false}, 2.25},
		"resources: {limits: {memory: 8Gi}}, containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]":                           {sizing.Pod{1, 1, 8 * gib, false}, 1.25},
		"overhead: {cpu: 500m, memory: 160Mi}, containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]":                         {sizing.Pod{1, 1, gib, false}, 1.5},
		"overhead: {memory: 160Mi}, containers: [{name: a, resources: {limits: {cpu: 1}}}]":                                                 {sizing.Pod{1, 1, 0, false}, 1},
		"overhead: {cpu: 500m}, containers: [{name: a}]":                                                                                    {sizing.Pod{0, 0, 0, true}, 0},
	} {
		p, r, err := fromManifest(strings.NewReader("kind: Pod\nspec: {"+spec+"}"), sizing.Runtime{})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		s, err := sizing.Of(p, r)
		if p != want.pod || err != nil || s.CPUQuotaCores != want.quota || s.MemoryBytes != 2*gib+want.pod.MemoryLimit {
			t.Errorf("%s: %+v of %+v, %v; want %+v", spec, s, p, err, want)
		}
	}
}

// TestList: every pod of a List, and not what has none.
func TestList(t *testing.T) {
	text := `{"kind": "List", "items": [{"kind": "Service"},
		{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "x", "resources": {"limits": {"cpu": 2}}}]}},
		{"kind": "Deployment", "metadata": {"name": "b"}, "spec": {"template": {"spec": {"overhead": {"cpu": "1"}, "containers": [{"name": "x"}]}}}}]}`
	got, err := sizing.FromManifest(strings.NewReader(text), sizing.Runtime{})
	want := []sizing.Object{
		{Kind: "Pod", Name: "a", Pod: sizing.Pod{CPULimit: 2, CPURequest: 2}},
		{Kind: "Deployment", Name: "b", Pod: sizing.Pod{Unbounded: true}, Runtime: sizing.Runtime{Overhead: 1, OverheadGiven: true}},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v, (-want +got)\n%s", err, d)
	}
}

// TestAmounts: memory is told exactly in few digits, or said to be about so much.
func TestAmounts(t *testing.T) {
	for limit, want := range map[int64]string{0: "2GiB", 300 << 20: "2348MiB", 8e9: "about 9.451GiB", 10001 << 20: "about 11.77GiB"} {
		p := sizing.Pod{MemoryLimit: limit}
		s, err := sizing.Of(p, sizing.Runtime{})
		if err != nil {
			t.Fatal(err)
		}
		if got := sizing.Rules(p, sizing.Runtime{}, s)[3].Value; got != want {
			t.Errorf("%d: %s, want %s", limit, got, want)
		}
	}
}

// TestInitContainers: they run one after another before the others, so that only the
// one that asks for more than all of those counts; with the sidecars started before it.
func TestInitContainers(t *testing.T) {
	read := func(inits string) sizing.Pod {
		t.Helper()
		text := "kind: Service\n---\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {initContainers: [" + inits + "],\n" +
			"  containers: [{name: a, resources: {limits: {cpu: 1500m, memory: 1Gi}}}, {name: b, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}}}\n"
		p, _, err := fromManifest(strings.NewReader(text), sizing.Runtime{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const gib = 1 << 30
	one := func(name, limits string) string { return "{name: " + name + ", resources: {limits: {" + limits + "}}}" }
	mesh := "{name: mesh, restartPolicy: Always, resources: {limits: {cpu: 500m, memory: 1Gi}}}"
	for inits, want := range map[string]sizing.Pod{
		"":                                    {2.5, 2.5, 2 * gib, false},
		one("small", "cpu: 2, memory: 1Gi"):   {2.5, 2.5, 2 * gib, false},
		one("large", "cpu: 8, memory: 512Mi"): {8, 8, 2 * gib, false},
		one("open", "memory: 16Gi"):           {2.5, 2.5, 16 * gib, true},
		mesh:                                  {3, 3, 3 * gib, false},
		mesh + ", " + one("large", "cpu: 8, memory: 8Gi"): {8.5, 8.5, 9 * gib, false},
		one("large", "cpu: 8, memory: 8Gi") + ", " + mesh: {8, 8, 8 * gib, false},
	} {
		if d := cmp.Diff(want, read(inits)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", inits, d)
		}
	}
}

func TestManifestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":          "empty",
		"kind: Job": "no containers",
		"kind: Pod\nspec: {containers: [{name: a, resources: {limits: {cpu: lots}}}]}":  `2:57: container "a": cpu "lots"`,
		strings.Replace(pod, `"2"`, "2", 1):                                             "6:56: annotation",
		strings.Replace(pod, "4Gi", "1536m", 1):                                         `15:42: container "web": memory "1536m" is thousandths of a byte; write 1536Mi`,
		"kind: Pod\nspec: {resources: {limits: {cpu: lots}}, containers: [{name: a}]}":  `2:34: the pod: cpu "lots"`,
		"kind: Pod\nspec: {resources: {limits: {memory: 8m}}, containers: [{name: a}]}": `2:37: the pod: memory "8m"`,
		"kind: Pod\nspec: {overhead: {cpu: lots}, containers: [{name: a}]}":             `2:24: the overhead: cpu "lots"`,
		"kind: List\nitems: []":                 "no containers in List",
		strings.Replace(pod, "4Gi", "2000", 1):  "under 1Mi",
		strings.Replace(pod, "4Gi", "-4Gi", 1):  "-4Gi",
		"kind: Service\n---\nkind: Namespace\n": "no containers in Service, Namespace",
		"kind: Pod\nspec: {containers: {}}":     "line 2",
		"kind: Pod\n" + strings.Repeat("# long\n", 1<<18) + "spec: {containers: [{name: a}]}": "over",
	} {
		if _, _, err := fromManifest(strings.NewReader(text), sizing.Runtime{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
}

func FuzzFromManifest(f *testing.F) {
	f.Add(pod)
	f.Add(`{"kind":"Pod","spec":{"containers":[{"resources":{"limits":{"cpu":"1e9","memory":"1Ei"}}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, r, err := fromManifest(strings.NewReader(text), sizing.Runtime{})
		if err != nil {
			return
		}
		if p.CPULimit < 0 || p.CPURequest < 0 || p.MemoryLimit < 0 {
			t.Fatalf("%+v", p)
		}
		if s, err := sizing.Of(p, r); err == nil && (s.VCPUsTotal < 1 || s.MemoryBytes <= 0) {
			t.Fatalf("%+v", s)
		}
	})
}

// TestManifestIsBounded: the errors of equal keys took more memory than a machine has.
func TestManifestIsBounded(t *testing.T) {
	_, _, err := fromManifest(strings.NewReader("kind: Pod\n"+strings.Repeat("a:\n", 4000)), sizing.Runtime{})
	if err == nil || !strings.HasPrefix(err.Error(), "1:1: not a manifest: line 3: the key \"a\" is in line 2 already") {
		t.Errorf("%.300v", err)
	}
}
