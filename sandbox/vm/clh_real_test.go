package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/agent/guest"
	"tare/host/cgroup"
	"tare/host/network"
	"tare/host/spawn"
	"tare/host/state/statetest"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/sandboxtest"
	"tare/sizing"
)

// clhKind is a kind over this host's cloud-hypervisor.
func clhKind(t *testing.T) *Hypervisor {
	t.Helper()
	if testing.Short() {
		t.Skip("starts machines")
	}
	if _, err := exec.LookPath(cloudHypervisor); err != nil {
		t.Skip("no cloud-hypervisor on PATH")
	}
	if here, err := haveKVM(); err != nil || !here {
		t.Skip("cloud-hypervisor needs /dev/kvm: ", err)
	}
	k := kind(t)
	k.cfg.Name, k.cfg.Runtime, k.cfg.CacheDir = "vm-clh", cloudHypervisor, filepath.Join(k.cfg.CacheDir, "own", "vm-clh")
	return k
}

// TestContractCLH runs where KVM boots a machine.
func TestContractCLH(t *testing.T) {
	k := clhKind(t)
	statetest.HostLock(t)
	if err := k.Check(t.Context()); err != nil {
		t.Skip("no machine of cloud-hypervisor here: ", err)
	}
	sandboxtest.Run(t, k, sandboxtest.Options{CPUOverhead: sizing.Overhead, Params: map[string]string{paramMemory: "512"}})
}

// TestDevicesCLH: cloud-hypervisor takes the whole command line, its devices included,
// makes what vm.resize asks for, and leaves nothing. It says nothing of the guest, so that it
// holds also where KVM runs none.
func TestDevicesCLH(t *testing.T) {
	for _, root := range []string{rootVirtiofs, rootBlock} {
		t.Run(root, func(t *testing.T) {
			k := clhKind(t)
			statetest.HostLock(t)
			s := blockSpec(t, startBoot)
			s.Options[paramRootfs], s.CPULimit, s.MemoryLimit = root, 1, 128<<20
			b, err := network.Open(t.Context())
			if err != nil {
				t.Skip("no bridge: ", err)
			}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			if s.Network, err = b.Attach(s.Name); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Detach(s.Name); err != nil {
					t.Error(err)
				}
			})
			s.Options[paramVCPUs], s.Options[paramMaxVCPUs] = "2", "3"
			devicesCLH(t, k, s)
		})
	}
}

func devicesCLH(t *testing.T, k *Hypervisor, s sandbox.Spec) {
	s.Options[paramAccel] = accelKVM
	i := &instance{kind: k, spec: s}
	var err error
	if i.o, err = k.read(s, hostCPUs()); err != nil {
		t.Fatal(err)
	}
	if i.qemu, err = k.findQEMU(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i.daemon, err = k.findVirtiofsd(t.Context()); err != nil && i.o.rootfs == rootVirtiofs {
		t.Skip(err)
	}
	if i.files, err = k.files(t.Context()); err != nil {
		t.Skip("no guest kernel: ", err)
	}
	i.accel = accelKVM
	if i.group, i.hierarchy, err = spawn.Group(s.Name, cgroup.Limits{CPU: i.o.size.CPUQuotaCores}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}()
	h, err := i.build(t.Context())
	if err == nil {
		err = i.turnOn(t.Context(), h)
	}
	if err != nil {
		t.Fatal(i.explain(err))
	}
	if err := i.machine.plug(t.Context(), i.o, false); err != nil {
		t.Error(i.explain(err))
	}
	roles := map[record.ThreadRole]int{}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", i.machine.proc.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/comm", i.machine.proc.Pid, task.Name()))
		if err != nil {
			continue
		}
		t.Logf("%s", comm)
		roles[ThreadRoles().Of(sandbox.Thread{Comm: strings.TrimSpace(string(comm))})]++
	}
	if roles[record.RoleVCPU] != 3 {
		t.Errorf("%d threads of processors, want 2 and one plugged in", roles[record.RoleVCPU])
	}
	if v := i.machine.version(); !strings.HasPrefix(v, "cloud-hypervisor 5") {
		t.Error(v)
	}
}

// TestVsockGuest boots the guest in QEMU with the virtio socket that cloud-hypervisor has in
// itself, by vhost-device-vsock: its agent comes to the host by that.
func TestVsockGuest(t *testing.T) {
	daemon, err := exec.LookPath("vhost-device-vsock")
	if err != nil {
		t.Skip("no vhost-device-vsock on PATH: cargo install vhost-device-vsock")
	}
	k := host(t)
	f, err := k.files(t.Context())
	if err != nil {
		t.Skip("no guest kernel: ", err)
	}
	dir := t.TempDir()
	a, err := awaitGuest(dir)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "vhost")
	d := exec.Command(daemon, "--socket", socket, "--uds-path", filepath.Join(dir, vsockFile), "--guest-cid", fmt.Sprint(guestCID))
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = d.Process.Kill()
		_ = d.Wait()
	}()
	for range 1000 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s := spec(t)
	i := &instance{kind: k, spec: s}
	if i.o, err = k.read(s, hostCPUs()); err != nil {
		t.Fatal(err)
	}
	q, err := k.findQEMU(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootWithin)
	defer cancel()
	h := &hardware{
		name: s.Name, accel: accelTCG, files: f, vcpus: 1, maxVCPUs: 1, memory: 256 << 20, maxMemory: 256 << 20, shared: true,
		args: []string{"-chardev", "socket,id=vsock,path=" + socket, "-device", "vhost-user-vsock-pci,chardev=vsock"},
	}
	m, err := power(ctx, q.path, h, spawn.Options{})
	defer func() { _ = m.close(context.Background()) }()
	if err != nil {
		t.Fatal(err)
	}
	_ = m.channel.Close()
	m.channel, m.sent.to = a, a
	if err := m.greet(ctx); err != nil {
		t.Fatal(m.explain(err))
	}
	var up guest.Up
	if err := m.client.Call(ctx, guest.OpPlug, guest.Plug{CPUs: 1}, &up); err != nil || up.CPUs != 1 || up.Kernel == "" {
		t.Errorf("%+v, %v", up, err)
	}
	// The end of the stream ends the machine, though nobody has set it up.
	if err := m.off(ctx); err != nil {
		t.Error(m.explain(err))
	}
}
