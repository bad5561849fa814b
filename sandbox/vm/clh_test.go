package vm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/agent/guest"
	"tare/host/network"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/vm/boot"
)

func TestLineCLH(t *testing.T) {
	file := func() *os.File { return os.Stdin } // its number is the place in the list
	dir := t.TempDir()
	h := &hardware{
		name: "s", vmm: cloudHypervisor, dir: dir, accel: accelKVM, files: boot.Files{Kernel: "/k", Initramfs: "/i"},
		vcpus: 2, maxVCPUs: 4, memory: 512 << 20, maxMemory: 640 << 20, shared: true, api: file(), events: file(), console: file(),
		shares: []*share{{tag: tagRoot, socket: "root.sock"}},
		disks:  []disk{{serial: "data", path: `/d, "x"`}, {serial: "root", path: "/u", over: "/image"}},
		tap:    &network.TapLink{Files: []*os.File{file(), file()}, MAC: []byte{2, 0, 0, 0, 0, 1}}, args: []string{"--seccomp", "log"},
	}
	l, err := h.lineCLH()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(l.args, "\n") + "\n"
	for _, want := range []string{
		"--api-socket\nfd=3\n", "--event-monitor\nfd=4\n", "--cpus\nboot=2,max=4\n", "--memory\nsize=512M,shared=on,hotplug_size=256M\n",
		"--kernel\n/k\n--initramfs\n/i\n--cmdline\nconsole=ttyS0 ", "--serial\nfile=/proc/self/fd/5\n", "--vsock\ncid=3,socket=vsock\n",
		"--fs\ntag=root,socket=root.sock,", "--disk\npath=data.disk,serial=data,image_type=raw\n",
		"--disk\npath=root.disk,serial=root,image_type=qcow2,backing_files=on\n", "--net\nfd=[6,7],mac=02:00:00:00:00:01,num_queues=4\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if !strings.HasSuffix(got, "--seccomp\nlog\n") {
		t.Errorf("the study's own arguments are not the last: %q", l.args)
	}
	if to, err := os.Readlink(filepath.Join(dir, "data.disk")); err != nil || to != `/d, "x"` {
		t.Errorf("%q, %v", to, err)
	}
	plain := &hardware{dir: dir, accel: accelKVM, vcpus: 1, maxVCPUs: 1, memory: 256 << 20, maxMemory: 256 << 20}
	l, err = plain.lineCLH()
	if err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"shared", "hotplug_size", "--net", "--disk", "--fs", "mitigations=off"} {
		if got := strings.Join(l.args, "\n"); strings.Contains(got, never) {
			t.Errorf("%q in\n%s", never, got)
		}
	}
}

func TestParseVersionCLH(t *testing.T) {
	// As 54.0 says it.
	q, err := parseVersion("cloud-hypervisor v54.0.0\nMigration Protocol Versions: 0\n")
	if err != nil || q.vmm != cloudHypervisor || q.version != "54.0.0" || q.major != 54 {
		t.Errorf("%+v, %v", q, err)
	}
	for text, want := range map[string]string{
		"cloud-hypervisor v41.0\n": "too old", "Firecracker v1.13.1\n": "not supported: Firecracker", "cloud-hypervisor-static": "neither QEMU's",
	} {
		if _, err := parseVersion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTakesOptions(t *testing.T) {
	for vmm, want := range map[string]bool{theQEMU: true, cloudHypervisor: false} {
		for _, o := range []options{{accel: accelTCG}, {accel: auto, snapshot: true}} {
			if err := (qemu{vmm: vmm}).takes(o); (err == nil) != want {
				t.Errorf("%s, %+v: %v", vmm, o, err)
			}
		}
		if err := (qemu{vmm: vmm}).takes(options{accel: auto}); err != nil {
			t.Errorf("%s: %v", vmm, err)
		}
	}
}

// TestRolesCLH: the threads as they were seen with cloud-hypervisor 54.0 on Linux 6.18; those
// of queues, which begin once a guest drives the device, as virtio-devices/src/net.rs and block.rs name
// them.
func TestRolesCLH(t *testing.T) {
	args := []string{"/usr/bin/cloud-hypervisor", "--api-socket", "fd=3"}
	for comm, want := range map[string]record.ThreadRole{
		"cloud-hyperviso": record.RoleVMM, "vmm": record.RoleVMM, "http-server": record.RoleVMM, "event-monitor": record.RoleVMM, "vmm_signal_hand": record.RoleVMM,
		"vcpu0": record.RoleVCPU, "vcpu11": record.RoleVCPU, "_net2_qp0": record.RoleIOThread, "_disk0_q0": record.RoleIOThread,
	} {
		if got := ThreadRoles().Of(sandbox.Thread{Comm: comm, Args: args}); got != want {
			t.Errorf("%q is %s, want %s", comm, got, want)
		}
	}
}

// TestArrival: who comes to the socket is read and written; nobody else is let in, and
// the wait for one who does not come has an end.
func TestArrival(t *testing.T) {
	dir := t.TempDir()
	a, err := awaitGuest(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%s_%d", vsockFile, guest.VsockPort))
	conn, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if _, err := io.ReadFull(a, b); err != nil || string(b) != "hi" {
		t.Fatalf("%q, %v", b, err)
	}
	a.leave()
	if _, err := a.Write([]byte("ho")); err != nil {
		t.Error("a guest that is here was left: ", err)
	}
	if _, err := net.Dial("unix", name); err == nil {
		t.Error("a second one was let in")
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Read(b); err == nil {
		t.Error("a closed stream was read")
	}
	none, err := awaitGuest(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		_, err := none.Read(b)
		waited <- err
	}()
	none.leave()
	if err := <-waited; err == nil || !strings.Contains(err.Error(), "has not connected") {
		t.Error(err)
	}
}

// TestBound: a socket has a name, however long that one's path is.
func TestBound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, client, name, err := named(dir, "root.sock")()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode()&os.ModeSocket == 0 || client != nil {
		t.Error(st, client, err)
	}
	if _, _, _, err := named(dir, "root.sock")(); !errors.Is(err, unix.EADDRINUSE) {
		t.Error(err)
	}
}

// TestBacking: qemu-img finds the image by the name in the file that is laid over it.
func TestBacking(t *testing.T) {
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("no qemu-img here: apt-get install qemu-utils")
	}
	dir := t.TempDir()
	image, over := filepath.Join(dir, "an image"), filepath.Join(dir, "over.qcow2")
	content := make([]byte, 1<<20)
	copy(content[512<<10:], "in the image")
	for path, b := range map[string][]byte{image: content, over: emptyQcow2(int64(len(content)), image)} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", over}, {"compare", over, image}} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
