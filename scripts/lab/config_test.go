package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"go.yaml.in/yaml/v3"
)

// named are the files below a folder that commands have as arguments.
func named(all []daemon, below string) []string {
	var out []string
	for _, d := range all {
		for _, a := range d.Args {
			_, value, _ := strings.Cut(a, "=")
			if strings.HasPrefix(value, below) && filepath.Ext(value) != "" {
				out = append(out, value)
			}
		}
	}
	return out
}

// Everything but the forwarder listens in the lab's own namespaces, and none on every address.
func TestAddresses(t *testing.T) {
	p := places{run: "/r", bin: "/b"}
	c, err := p.commands()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Concat(c.Control, c.Virt, []daemon{c.Kwok, c.Guests}) {
		if all := strings.Join(d.Args, " "); strings.Contains(all, "0.0.0.0") || strings.Contains(all, "[::]") {
			t.Errorf("%s listens on every address: %s", d.Name, all)
		}
	}
	var all []netip.Prefix
	for _, s := range []string{nodeNetwork, services, simulatedPods} {
		all = append(all, netip.MustParsePrefix(s))
	}
	for _, n := range nodes() {
		pods := netip.MustParsePrefix(n.pods)
		if !pods.Contains(netip.MustParseAddr(n.gateway)) || !all[0].Contains(netip.MustParseAddr(n.address)) {
			t.Errorf("%+v", n)
		}
		all = append(all, pods)
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a.Overlaps(b) {
				t.Errorf("%s and %s overlap", a, b)
			}
		}
	}
}

func TestMakeConfig(t *testing.T) {
	l := &lab{places: places{run: t.TempDir()}}
	if err := writeFile(filepath.Join(l.run, "registry-name"), []byte("127.0.0.1:5001")); err != nil {
		t.Fatal(err)
	}
	n := nodes()[0]
	if err := l.makeConfig(n, facts{Runc: "/usr/bin/runc", Runsc: "/x/runsc", Snapshotter: "overlayfs", Snapshotters: []string{"native", "erofs"}, Group: "/lab-k8s/node1"}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(l.node(n, "etc", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var kubelet map[string]any
	if err := yaml.Unmarshal(read("kubelet.yaml"), &kubelet); err != nil {
		t.Fatal(err)
	}
	if kubelet["cgroupRoot"] != "/lab-k8s/node1" || kubelet["address"] != n.address || kubelet["cgroupDriver"] != "cgroupfs" {
		t.Errorf("kubelet.yaml: %v", kubelet)
	}
	var cni struct {
		Plugins []struct{ Type string }
	}
	if err := json.Unmarshal(read("cni/10-lab.conflist"), &cni); err != nil || cni.Plugins[0].Type != "bridge" {
		t.Errorf("10-lab.conflist: %v, %v", cni, err)
	}
	if !strings.HasPrefix(string(read("runsc.toml")), "binary_name = \"/x/runsc\"\n") {
		t.Errorf("runsc.toml: %s", read("runsc.toml"))
	}
	for _, line := range []string{`BinaryName = "/usr/bin/runc"`, `snapshotter = "overlayfs"`, `runtimes.runc-erofs]
      runtime_type = "io.containerd.runc.v2"
      snapshotter = "erofs"`, `platform = "linux/` + runtime.GOARCH + `"`, `sandbox = "` + pauseImage + `"`, `config_path = "` + nodeEtc + `/certs.d"`} {
		if !strings.Contains(string(read("containerd.toml")), line) {
			t.Errorf("containerd.toml has no %s", line)
		}
	}
	for _, name := range []string{"127.0.0.1:5001", registry} {
		if hosts := string(read("certs.d/" + name + "/hosts.toml")); !strings.Contains(hosts, "\nserver = \"http://10.77.0.1:5000\"\n") {
			t.Errorf("hosts.toml of %s: %s", name, hosts)
		}
	}
}

func TestSimulatedNodes(t *testing.T) {
	b, err := simulatedNodes(3, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name                string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 {
		t.Fatalf("%d nodes", len(list.Items))
	}
	c, err := places{run: "/r", bin: "/b"}.commands()
	if err != nil {
		t.Fatal(err)
	}
	key, value := "", ""
	for _, a := range c.Kwok.Args {
		if mark, ok := strings.CutPrefix(a, "--manage-nodes-with-annotation-selector="); ok {
			key, value, _ = strings.Cut(mark, "=")
		}
	}
	last := list.Items[2].Metadata
	if last.Name != "simulated-0002" || last.Labels["kubernetes.io/arch"] != "arm64" || value == "" || last.Annotations[key] != value || last.Labels["kubevirt.io/schedulable"] != "true" {
		t.Errorf("%+v", last)
	}
}

// TestGuests: guests are played only on simulated nodes, by kwok, with the name of an account whose changes virt-api takes. The nodes take
// machines.
func TestGuests(t *testing.T) {
	c, err := places{run: "/r", bin: "/b"}.commands()
	if err != nil || c.Guests.Program != c.Kwok.Name || !slices.Contains(c.Guests.Args, "--config=/r/"+guestsFile) {
		t.Errorf("%+v, %v", c.Guests, err)
	}
	text, err := templates.ReadFile("config/" + guestsFile)
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]string{} // the one that a stage begins in, and what it changes
	for d := range strings.SplitSeq(string(text), "\n---\n") {
		var s struct {
			Spec struct {
				ResourceRef struct{ APIGroup, Kind string } `yaml:"resourceRef"`
				Selector    struct {
					All []struct {
						Key, Operator string
						Values        []string
					} `yaml:"matchExpressions"`
				}
				Steps []struct {
					Patch struct {
						Template      string
						Impersonation struct{ Username string }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(d), &s); err != nil {
			t.Fatal(err)
		}
		all, patch := s.Spec.Selector.All, s.Spec.Steps[0].Patch
		if len(all) != 3 || all[0].Key != `.status.nodeName // "" | startswith("`+strings.TrimRight(simulatedName(0), "0")+`")` || patch.Impersonation.Username != kubeVirtAccount+"controller" {
			t.Errorf("%+v", s)
		}
		phases[all[1].Operator+" "+strings.Join(all[2].Values, " ")] = patch.Template
	}
	if phases["DoesNotExist Scheduled"] != "phase: Running" || phases["Exists Scheduled Running"] != "phase: Succeeded" || len(phases) != 2 {
		t.Errorf("%v", phases)
	}
}

func TestObjects(t *testing.T) {
	for _, name := range []string{"objects.yaml", "check.yaml", "ingress.yaml", "kubevirt.yaml", "machine.yaml"} {
		b, err := render(name, facts{Probe: probeImage, Pulled: probeImage, Snapshotters: []string{"native", "erofs"}})
		if err != nil {
			t.Fatal(err)
		}
		if classes := strings.Count(string(b), "handler: "); name == "objects.yaml" && classes != 4 {
			t.Errorf("%d runtime classes: %s", classes, b)
		}
		for d := range strings.SplitSeq(string(b), "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(d), &object); err != nil || object["kind"] == nil {
				t.Errorf("%s: %v: %s", name, err, d)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	v1 := []*mountinfo.Info{{Mountpoint: "/sys/fs/cgroup/cpu", FSType: "cgroup"}, {Mountpoint: "/sys/fs/cgroup/unified", FSType: "cgroup2"}, {Mountpoint: "/elsewhere", FSType: "cgroup"}}
	v2 := []*mountinfo.Info{{Mountpoint: "/sys/fs/cgroup", FSType: "cgroup2"}}
	for _, c := range []struct {
		name    string
		mounts  []*mountinfo.Info
		systemd bool
		root    string
		procs   string
	}{
		{"version 1", v1, true, "/lab-k8s/node1", "/sys/fs/cgroup/cpu/lab-k8s/node1/daemons/cgroup.procs"},
		{"version 2", v2, false, "/", "/sys/fs/cgroup/lab-k8s/node1/daemons/cgroup.procs"},
		{"version 2 of systemd", v2, true, "/", "/sys/fs/cgroup/lab-k8s.scope/node1/daemons/cgroup.procs"},
	} {
		g, err := groupsFrom(c.mounts, c.systemd)
		if err != nil {
			t.Fatal(err)
		}
		if g.kubeletRoot("node1") != c.root || g.procs(daemons("node1"))[0] != c.procs {
			t.Errorf("%s: %s, %v", c.name, g.kubeletRoot("node1"), g.procs(daemons("node1")))
		}
		for text, want := range map[string]bool{
			"0::/" + g.top + "/node1/daemons\n":                    true,
			"4:cpu:/user\n0::/" + g.top + "\n":                     true,
			"4:cpu:/user/" + g.top + "\n0::/" + g.top + "-other\n": false,
		} {
			if g.holds(text) != want {
				t.Errorf("%s: holds(%q) is %t", c.name, text, !want)
			}
		}
	}
	if _, err := groupsFrom(nil, false); err == nil {
		t.Error("no control groups is no error")
	}
}

func TestUnused(t *testing.T) {
	for path, want := range map[string]bool{
		"/run": true, "/run/netns/x": true, "/var/lib/x": true, "/tmp/a": true,
		"/runner": false, "/": false, "/home/user": false, "/sys/fs/cgroup/cpu": false,
	} {
		if unused(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

// Each program has one version, which the page names.
func TestVersions(t *testing.T) {
	inModule(t)
	var out strings.Builder
	if err := list(t.Context(), &out, moduleDir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		if len(f) < 3 || strings.Contains(f[1], "?") || !strings.Contains(string(page), strings.TrimSuffix(f[1], ":")) {
			t.Errorf("docs/lab.md does not have %q", line)
		}
	}
	if flags := versionFlags("v1.34.4"); !strings.Contains(flags, "version.gitVersion=v1.34.4 ") || !strings.Contains(flags, "version.gitMinor=34 ") {
		t.Errorf("Kubernetes is told the version %s", flags)
	}
	before, err := versionsKey(moduleDir)
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(moduleDir)); err != nil {
		t.Fatal(err)
	}
	if same, err := versionsKey(copied); err != nil || same != before {
		t.Errorf("the same modules have the keys %s and %s: %v", before, same, err)
	}
	if err := os.WriteFile(filepath.Join(copied, "etcd", "go.sum"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := versionsKey(copied); err != nil || other == before {
		t.Errorf("a changed go.sum keeps the key: %v", err)
	}
}
