package kubevirt

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kv "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/volume"
)

var update = flag.Bool("update", false, "write the golden files")

func defined(t *testing.T, keys param.Values) *Machines {
	t.Helper()
	base := New(&Cluster{Version: "v1.6.0", Emulated: record.No}, nil, nil, &pod.Study{
		ID: "tabc", Namespace: "tare-tabc", Coordinator: "10.0.0.5:7777", Secret: "tare-tabc-agent",
		Owner: &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "tare-tabc-coordinator", UID: "u"},
	})
	v, err := param.Fill(base.Keys(), keys)
	if err != nil {
		t.Fatal(err)
	}
	k, err := base.Define("fedora", v)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*Machines)
}

// cases are machines whose manifests are kept.
func cases() map[string]struct {
	keys param.Values
	want sandbox.Want
} {
	want := sandbox.Want{Name: "tabc-1-server", Trial: "tabc-1", Role: "server", Node: "n1"}
	disks := want
	disks.CPULimit, disks.MemoryLimit = 2.5, 8<<30
	disks.Volumes = []volume.Volume{{Name: volume.Data, Size: 4 << 30}, {Name: "scratch", Medium: volume.Memory, Size: 1 << 20}}
	disks.Options = map[string]string{
		paramCores: "4", paramMemory: "4096", paramPolicy: pool, paramPool: "4", paramBlockMQ: "true", paramNetMQ: "true", paramBinding: bridge,
	}
	dedicated := want
	dedicated.Volumes = volume.AtData(volume.Disk)
	dedicated.Options = map[string]string{paramPolicy: "shared", paramDedicated: "true"}
	sata := want
	sata.Node, sata.Options = "", map[string]string{paramBus: "sata"}
	image := param.Values{keyImage: "example.org/disks/fedora@sha256:0123"}
	return map[string]struct {
		keys param.Values
		want sandbox.Want
	}{
		"plain": {image, want}, "pool": {image, disks}, "sata": {image, sata},
		"dedicated": {param.Values{keyPVC: "golden", keyStorageClass: "fast"}, dedicated},
	}
}

// TestManifests: machines are made as they were, and the schema of KubeVirt's own CustomResourceDefinition
// accepts them.
func TestManifests(t *testing.T) {
	schema := crd(t)
	for name, c := range cases() {
		k := defined(t, c.keys)
		if err := k.CheckOptions(c.want.Options); err != nil {
			t.Error(name, err)
		}
		m, err := k.machine(&c.want, "TOKEN")
		if err != nil {
			t.Fatal(name, err)
		}
		var got bytes.Buffer
		for _, obj := range m.objects() {
			text, err := yaml.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "---\n%s", text)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(kept, got.Bytes()) {
			t.Errorf("%s: %v; the manifests are now\n%s", name, err, got.Bytes())
		}
		if err := schema.Validate(plain(t, m.vmi)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchema: the schema refuses what KubeVirt does not know.
func TestSchema(t *testing.T) {
	schema := crd(t)
	c := cases()["plain"]
	m, err := defined(t, c.keys).machine(&c.want, "TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(domain map[string]any){
		"an unknown field": func(d map[string]any) { d["ioThreadPolicy"] = "auto" },
		"a wrong type":     func(d map[string]any) { d["ioThreadsPolicy"] = 1 },
		"no devices":       func(d map[string]any) { delete(d, "devices") },
	} {
		doc := plain(t, m.vmi)
		spoil(doc["spec"].(map[string]any)["domain"].(map[string]any))
		if schema.Validate(doc) == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func plain(t *testing.T, obj any) map[string]any {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return out.(map[string]any)
}

// crd is the schema of VirtualMachineInstance, under which no other fields are known.
func crd(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("testdata/virtualmachineinstance.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("vmi.json", strict(file.OpenAPIV3Schema)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("vmi.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// strict turns a structural schema of Kubernetes into a JSON Schema that knows what the API server
// does besides: fields without a description are dropped, and null is as good as nothing.
func strict(schema any) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = strict(s[i])
		}
	case map[string]any:
		for k, v := range s {
			s[k] = strict(v)
		}
		_, fields := s["properties"].(map[string]any)
		kind, typed := s["type"].(string)
		if fields && typed && kind == "object" {
			s["additionalProperties"] = false
		}
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "type")
		} else if typed {
			s["type"] = []any{kind, "null"}
		}
		delete(s, "default")
		delete(s, "format")
		delete(s, "pattern")
	}
	return schema
}

// TestRefusals: what KubeVirt refuses or ignores is refused, with what to write.
func TestRefusals(t *testing.T) {
	k := defined(t, param.Values{keyImage: "i"})
	for _, c := range []struct {
		options map[string]string
		says    string
	}{
		{map[string]string{paramBus: "scsi", paramPolicy: "auto"}, "io-threads-policy: auto has no effect: only virtio disks have I/O threads; write bus: virtio"},
		{map[string]string{paramBus: "sata", paramBlockMQ: "true"}, "block-multi-queue: true has no effect: only virtio disks have queues; write bus: virtio"},
		{map[string]string{paramBus: "scsi", paramDedicated: "true"}, "KubeVirt refuses dedicated-io-thread: true with bus: scsi; write bus: virtio"},
		{map[string]string{paramPolicy: pool}, "io-threads-policy: supplementalPool needs supplemental-pool-thread-count; write a number from 1"},
		{map[string]string{paramPool: "2"}, "supplemental-pool-thread-count has an effect only with io-threads-policy: supplementalPool; write that, or 0 threads"},
		{map[string]string{paramPolicy: pool, paramPool: "2", paramDedicated: "true"},
			"dedicated-io-thread: true has no effect with io-threads-policy: supplementalPool, whose threads serve every disk; change one of them"},
		{nil, ""},
	} {
		if err := k.CheckOptions(c.options); fmt.Sprint(err) != c.says && (err != nil || c.says != "") {
			t.Errorf("%v: %v, want %s", c.options, err, c.says)
		}
	}
	const small = "a memory limit of 1GiB is less than the guest's memory of 2GiB; raise the limit, or lower guest-memory"
	if err := k.CheckHere(t.Context(), sandbox.Spec{Want: sandbox.Want{MemoryLimit: 1 << 30}}); fmt.Sprint(err) != small {
		t.Error(err)
	}
	for want, keys := range map[string]param.Values{"write image: REFERENCE or pvc: NAME": {}, "leave out image or pvc": {keyImage: "a", keyPVC: "b"}} {
		if _, err := k.Define("x", keys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", keys, err)
		}
	}
	base := New(nil, nil, nil, &pod.Study{})
	if err := base.CheckOptions(nil); !errors.Is(err, errNoDisk) {
		t.Error(err)
	}
	if err := base.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "the cluster has no KubeVirt") {
		t.Error(err)
	}
}

// TestWhyNot: a machine that cannot run says why, in KubeVirt's words, and what to do.
func TestWhyNot(t *testing.T) {
	condition := func(kind, reason, message string) *kv.VirtualMachineInstance {
		m := &kv.VirtualMachineInstance{}
		m.Status.Conditions = []kv.VirtualMachineInstanceCondition{{
			Type: kv.VirtualMachineInstanceConditionType(kind), Status: corev1.ConditionFalse, Reason: reason, Message: message,
		}}
		return m
	}
	ended := &kv.VirtualMachineInstance{}
	ended.Status.Phase = kv.Failed
	missing := condition("PodScheduled", "Unschedulable", "didn't find PVC golden") // both, in this order, by virt-controller 1.6
	missing.Status.Conditions = append(missing.Status.Conditions, condition("Synchronized", "FailedPvcNotFound", "didn't find PVC golden").Status.Conditions...)
	left := ended.DeepCopy() // as virt-controller 1.6 writes it when a node's heartbeat is old
	left.Status.Reason = "NodeUnresponsive"
	for _, c := range []struct {
		m    *kv.VirtualMachineInstance
		says string
	}{
		{&kv.VirtualMachineInstance{}, "<nil>"},
		{condition("Ready", "GuestNotRunning", "not yet"), "<nil>"},
		{condition("PodScheduled", "SchedulerError", "again"), "<nil>"},
		{condition("PodScheduled", "Unschedulable", "0/2 nodes have devices.kubevirt.io/kvm"), "the virtual machine cannot run: Unschedulable: 0/2 nodes have devices.kubevirt.io/kvm"},
		{condition("Synchronized", "FailedCreate", "violates PodSecurity"), "the virtual machine cannot run: FailedCreate: violates PodSecurity; does the namespace admit KubeVirt's launcher pods?"},
		{condition("Synchronized", "FailedCreate", `pods "virt-launcher-x" is forbidden: violates PodSecurity "restricted:v1.34": seccompProfile (...)`),
			"the namespace enforces the Pod Security level restricted, which does not admit KubeVirt's launcher pods; leave -n out, or label the namespace: `kubectl label namespace  --overwrite pod-security.kubernetes.io/enforce=baseline`"},
		{condition("Synchronized", "FailedPvcNotFound", "PVC a/b does not exist"),
			"the virtual machine cannot run: FailedPvcNotFound: PVC a/b does not exist; a claim must be in the namespace of the study: give it with -n"},
		{missing, "the virtual machine cannot run: FailedPvcNotFound: didn't find PVC golden; a claim must be in the namespace of the study: give it with -n"},
		{ended, "the virtual machine cannot run: Failed: the guest has ended"},
		{left, "the virtual machine cannot run: Failed: NodeUnresponsive; does KubeVirt's virt-handler run on its node?"},
	} {
		if got := fmt.Sprint(whyNot(c.m)); got != c.says {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
	if err := whyNot(condition("Synchronized", "X", strings.Repeat("ä", kube.MaxReason))); len(err.Error()) > 2*kube.MaxReason {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// TestWhyNoLauncher: a launcher pod that no node takes says which labels it asks for; one that has a
// node says what is wrong there.
func TestWhyNoLauncher(t *testing.T) {
	p := &corev1.Pod{}
	p.Spec.NodeSelector = map[string]string{"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"}
	if err := whyNoLauncher(p); err != nil {
		t.Error(err)
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes."}}
	const labels = "the launcher pod cannot run: Unschedulable: 0/2 nodes; it asks for a node with the labels kubernetes.io/arch=amd64, kubevirt.io/schedulable=true; " +
		"KubeVirt's virt-handler sets those of kubevirt.io where it runs"
	if err := whyNoLauncher(p); fmt.Sprint(err) != labels {
		t.Error(err)
	}
	p.Spec.NodeName, p.Status.Conditions = "n1", nil
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such disk"}}}}
	if err := whyNoLauncher(p); fmt.Sprint(err) != "the launcher pod cannot run: ErrImagePull: no such disk" {
		t.Error(err)
	}
}

// TestStuck: a machine whose agent does not come says whom it waits for.
func TestStuck(t *testing.T) {
	for phase, whom := range map[kv.VirtualMachineInstancePhase]string{
		"": "virt-controller", kv.Pending: "virt-controller", kv.Scheduling: "launcher pod", kv.Scheduled: "virt-handler", kv.Running: "virtctl console",
	} {
		if got := stuck(phase); !strings.Contains(got, whom) {
			t.Errorf("%q: %s", phase, got)
		}
	}
}

// TestRefuses: a node takes machines with virt-handler's label, and with KVM unless machines are emulated.
func TestRefuses(t *testing.T) {
	n := &corev1.Node{}
	emulated, kvm := &Cluster{Emulated: record.Yes}, &Cluster{Emulated: record.No}
	for _, c := range []*Cluster{emulated, kvm} {
		if why := c.Refuses(n); !strings.HasPrefix(why, "no label kubevirt.io/schedulable=true") {
			t.Error(why)
		}
	}
	n.Labels = map[string]string{kv.NodeSchedulable: "true"}
	if why := emulated.Refuses(n); why != "" {
		t.Error(why)
	}
	if why := kvm.Refuses(n); !strings.HasPrefix(why, "no device devices.kubevirt.io/kvm") {
		t.Error(why)
	}
	n.Status.Allocatable = corev1.ResourceList{deviceKVM: resource.MustParse("1k")}
	if why := kvm.Refuses(n); why != "" {
		t.Error(why)
	}
}

// TestRoles: the threads of a launcher pod are told apart.
func TestRoles(t *testing.T) {
	for _, c := range []struct {
		comm, program string
		want          record.ThreadRole
	}{
		{"virt-launcher", "/usr/bin/virt-launcher", record.RoleShim}, {"rpc-virtqemud", "/usr/sbin/virtqemud", record.RoleShim},
		{"CPU 1/KVM", "/usr/libexec/qemu-kvm", record.RoleVCPU}, {"IO iothread2", "/usr/libexec/qemu-kvm", record.RoleIOThread},
		{"vhost-77", "", record.RoleVhost}, {"qemu-kvm", "/usr/libexec/qemu-kvm", record.RoleVMM},
	} {
		if got := roles().Of(sandbox.Thread{Comm: c.comm, Args: []string{c.program}}); got != c.want {
			t.Errorf("%s of %s: %s", c.comm, c.program, got)
		}
	}
}

// TestFacts: what a machine really was.
func TestFacts(t *testing.T) {
	k := defined(t, param.Values{keyImage: "example.org/d@sha256:01"})
	i := &instance{kind: k, machine: &machine{vmi: &kv.VirtualMachineInstance{}}, launcher: &corev1.Pod{}}
	i.launcher.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{deviceKVM: {}}}}}
	i.machine.vmi.Status.Machine = &kv.Machine{Type: "pc-q35-9.2"}
	i.machine.vmi.Status.CurrentCPUTopology = &kv.CPUTopology{Cores: 4}
	f := i.Facts()
	for name, want := range map[string]string{
		"accelerator": "kvm", "machine": "pc-q35-9.2", "vcpus": "4", "image": "example.org/d@sha256:01", record.FactImageDigest: "sha256:01", "kubevirt": "v1.6.0",
	} {
		if f[name] != want {
			t.Errorf("%s is %q, want %q", name, f[name], want)
		}
	}
	i.launcher.Spec.Containers = nil
	if f := i.Facts(); f["accelerator"] != "tcg" {
		t.Error(f)
	}
}

// TestTree: a tree has what is in the image, the program last, and nothing of what is mounted.
func TestTree(t *testing.T) {
	root := image(t)
	var out bytes.Buffer
	if err := tree(&out, root, map[string]bool{filepath.Join(root, "run/tare"): true, filepath.Join(root, "etc/hosts"): true}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "etc etc/passwd run run/tare usr usr/bin usr/bin/fio usr/bin/link tare" {
		t.Error(got)
	}
}

func image(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"tare": 0o755, "usr/bin/fio": 0o755, "etc/hosts": 0o644, "etc/passwd": 0o644, "run/tare/tls.key": 0o600} {
		file := filepath.Join(root, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("#!/bin/sh\n"), mode))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("fio", filepath.Join(root, "usr/bin/link")); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestUserData: what a guest runs is no longer than KubeVirt takes, whatever the names are.
func TestUserData(t *testing.T) {
	k := defined(t, param.Values{keyImage: "i"})
	k.study.Coordinator = "[fd00:1111:2222:3333:4444:5555:6666:7777]:7777"
	want := sandbox.Want{Name: strings.Repeat("n", 63), Volumes: []volume.Volume{{Name: "data"}, {Name: "wal"}, {Name: "tmp", Medium: volume.Memory}}}
	if _, err := k.machine(&want, strings.Repeat("T", 26)); err != nil {
		t.Error(err)
	}
	for range 20 {
		want.Volumes = append(want.Volumes, volume.Volume{Name: "more"})
	}
	if _, err := k.machine(&want, "T"); err == nil || !strings.Contains(err.Error(), "use fewer volumes") {
		t.Error(err)
	}
}

// TestGuest: the guest's script fetches the tree from a real hub with curl, unpacks it, makes the
// volumes and starts the agent. What needs root only says what it would do.
func TestGuest(t *testing.T) {
	for _, program := range []string{"curl", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	dir, root := t.TempDir(), image(t)
	coordinator, agent, _, err := control.NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	h, err := control.NewHub(coordinator, func(c net.Conn) { _ = c.Close() })
	if err != nil {
		t.Fatal(err)
	}
	h.Tree = func(w io.Writer) error { return tree(w, root, nil) }
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { _ = h.Serve(l) }()
	token, _, forget := h.Expect("vm")
	defer forget()

	k := defined(t, param.Values{keyImage: "i"})
	k.study.Coordinator = l.Addr().String()
	m, err := k.machine(&sandbox.Want{Name: "vm", Volumes: []volume.Volume{{Name: volume.Data}, {Name: "m", Medium: volume.Memory, Size: 4096}}}, token)
	if err != nil {
		t.Fatal(err)
	}
	volumes := m.vmi.Spec.Volumes
	script, err := base64.StdEncoding.DecodeString(volumes[len(volumes)-1].CloudInitNoCloud.UserDataBase64)
	if err != nil {
		t.Fatal(err)
	}
	guest := filepath.Join(dir, "guest")
	text := strings.NewReplacer("/var/lib/tare", guest, "i=/run/tare", "i="+filepath.Join(dir, "id"), "$r$i", guest+"/run/tare",
		"/dev/console", filepath.Join(dir, "console"), "/dev/disk", filepath.Join(dir, "disk")).Replace(string(script))
	for name, body := range agent.Files() {
		write(t, filepath.Join(dir, "id", name), string(body), 0o600)
	}
	write(t, filepath.Join(dir, "disk/by-id/virtio-tare-0"), "", 0o600)
	for _, stub := range []string{"mount", "mkfs.ext4", "setsid"} {
		write(t, filepath.Join(dir, "bin", stub), fmt.Sprintf("#!/bin/sh\necho %s \"$@\" $TARE_SANDBOX_NAME >> %s/calls\n", stub, dir), 0o755)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(filepath.Join(dir, "console"))
		t.Fatalf("%v\n%s", err, said)
	}
	var calls string
	for end := time.Now().Add(10 * time.Second); !strings.Contains(calls, "setsid") && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // it runs in the background
		text, _ := os.ReadFile(filepath.Join(dir, "calls"))
		calls = string(text)
	}
	for _, want := range []string{
		"mkfs.ext4 -qF " + dir + "/disk/by-id/virtio-tare-0 vm\nmount " + dir + "/disk/by-id/virtio-tare-0 " + guest + "/data vm\n",
		"mount -t tmpfs -o size=4096 tare " + guest + "/volumes/m vm\n", "setsid chroot " + guest + " /tare internal pod vm\n",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("%q is not in\n%s", want, calls)
		}
	}
	if _, err := os.Stat(filepath.Join(guest, "usr/bin/fio")); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, file, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}
