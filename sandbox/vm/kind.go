// Package vm runs sandboxes as virtual machines, shaped as Kata Containers shapes
// the machine around a pod: QEMU, a direct kernel boot, an agent as the guest's first
// process, and every process of it in one control group.
//
// The data path: 1. read turns a Spec and its options into a size, by the same code as
// `tare size` (sizing); 2. Start makes the control group tare/NAME with the
// CPU limit and a quarter of a core as its quota, and in it the daemons that serve the
// files (virtiofs) or the disks (block), and QEMU with a tap of the study's bridge;
// 3. it waits for QEMU's control socket (sandbox/vm/qmp) and for the agent's hello on a
// virtio port; 4. it plugs in the vCPUs and the memory that the limits ask for, and
// tells the guest who it is (agent/guest); 5. commands go to the agent; 6. Stop
// kills what is in the group and removes it.
//
// All sockets and the tap are handed down as open files, and have no name by then. So what
// outlives a machine's processes is the control group, which `tare clean` finds by its
// name, and with block the disks in the sandbox's own directories.
package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/host/spawn"
	"tare/internal/rootless"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/vm/boot"
)

// Config says what machines are made of.
type Config struct {
	Name     string      // of the kind; "" for vm
	Runtime  string      // name or path of a QEMU or a cloud-hypervisor; "" for the distribution's QEMU
	Args     []string    // added to its command line, behind tare's own
	Boot     boot.Source // of the guest's kernel and initramfs
	StateDir string      // Check makes its files below it
	CacheDir string      // of disk images, of snapshots, and of what was found out about this host
}

// Hypervisor makes virtual machines: it is the kind `vm`, or one that a study defines over another QEMU.
type Hypervisor struct {
	cfg    Config
	within time.Duration // bounds a start

	trying chan struct{} // full while the host is tried out: a wait for it ends with the waiter's context
	accel  string        // found by trying; "" before
	why    string        // KVM does not work

	toolMu sync.Mutex
	qemu   qemu      // found by the last Check, or since
	daemon virtiofsd // likewise
}

// New returns the kind. Nothing is looked up yet.
func New(cfg Config) *Hypervisor {
	return &Hypervisor{cfg: cfg, within: bootWithin, trying: make(chan struct{}, 1)}
}

// Name implements sandbox.Kind.
func (k *Hypervisor) Name() string { return cmp.Or(k.cfg.Name, "vm") }

// About implements sandbox.Kind.
func (k *Hypervisor) About() string {
	if k.cfg.Runtime == "" && len(k.cfg.Args) == 0 {
		return "a virtual machine by QEMU, sized and bounded as Kata Containers does it"
	}
	return "a virtual machine, sized and bounded as Kata Containers does it: " + strings.Join(append([]string{cmp.Or(k.cfg.Runtime, "QEMU")}, k.cfg.Args...), " ") + ", as the study defines it"
}

// checkWithin bounds Check, which boots a machine, or two where KVM is tried first.
const checkWithin = 90 * time.Second

// Check boots a machine and runs the smallest program in it. Its files come the way that
// this host has: a cell with the other is refused by itself.
func (k *Hypervisor) Check(ctx context.Context) error {
	switch {
	case runtime.GOARCH != "amd64":
		return fmt.Errorf("%s: machines are made for x86-64 only, this host is %s; leave it out of the study", k.Name(), runtime.GOARCH)
	case !rootless.Root():
		return fmt.Errorf("%s: needs root for control groups and mounts; run tare with sudo", k.Name())
	}
	k.toolMu.Lock()
	k.qemu, k.daemon = qemu{}, virtiofsd{} // look again: the host may have changed
	k.toolMu.Unlock()
	if _, err := k.findQEMU(ctx); err != nil {
		return fmt.Errorf("%s: %w", k.Name(), err)
	}
	if err := k.forgetAccelerator(ctx); err != nil {
		return fmt.Errorf("%s: %w", k.Name(), err)
	}
	options := map[string]string{paramMemory: "256", paramRootfs: rootVirtiofs}
	_, missing := k.findVirtiofsd(ctx)
	if missing != nil {
		options[paramRootfs] = rootBlock
	}
	err := spawn.ProbeWithin(ctx, checkWithin, k, k.cfg.StateDir, options)
	if err != nil && missing != nil {
		err = fmt.Errorf("%w; tried so, as %w", err, missing)
	}
	return err
}

// forgetAccelerator has the next start look at /dev/kvm and the verdict again.
func (k *Hypervisor) forgetAccelerator(ctx context.Context) error {
	select {
	case k.trying <- struct{}{}:
		k.accel = ""
		<-k.trying
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bootWithin bounds a start. An emulated machine takes 3 to 4 seconds on a quiet host; with many
// at once, each has its share.
const bootWithin = 2 * time.Minute

// Start implements sandbox.Kind.
func (k *Hypervisor) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	i, err := k.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.Name(), spec.Name, err)
	}
	return i, nil
}

// findQEMU asks QEMU for its version once: that takes 20 ms, which no start is to be
// weighed with.
func (k *Hypervisor) findQEMU(ctx context.Context) (q qemu, err error) {
	k.toolMu.Lock()
	defer k.toolMu.Unlock()
	if k.qemu.path == "" {
		k.qemu, err = findQEMU(ctx, k.cfg.Runtime)
	}
	return k.qemu, err
}

// boxes says whether tare confines a QEMU: not if the study's arguments do.
func (k *Hypervisor) boxes(q qemu) bool {
	return q.confines && !slices.Contains(k.cfg.Args, "-sandbox") && !slices.Contains(k.cfg.Args, "--seccomp")
}

// findVirtiofsd does the same for virtiofsd.
func (k *Hypervisor) findVirtiofsd(ctx context.Context) (v virtiofsd, err error) {
	k.toolMu.Lock()
	defer k.toolMu.Unlock()
	if k.daemon.path == "" {
		k.daemon, err = findVirtiofsd(ctx)
	}
	return k.daemon, err
}

// About how long a start and a stop take: measured on two cores, emulated; the rest is what
// they should be where the host's processors run the guest.
const (
	takesEmulated = 5 * time.Second
	takesKVM      = 1500 * time.Millisecond
	takesSnapshot = time.Second
)

// Traits implements sandbox.Kind. Whether a machine is emulated is known when its options
// say so, and how long it takes also when one was tried on this host before; otherwise the
// longer time is given.
func (k *Hypervisor) Traits(options map[string]string) sandbox.Traits {
	t := sandbox.Traits{CheckWithin: checkWithin, Takes: takesEmulated, Traits: record.Traits{
		Family: record.FamilyVM, Runtime: filepath.Base(cmp.Or(k.cfg.Runtime, "qemu-system-x86_64")), Flags: sandbox.Flags(k.cfg.Args),
		OwnKernel: record.Yes, Native: sandbox.Native,
	}}
	v, err := param.Fill(k.Params(), param.Values(options))
	if err != nil {
		return t
	}
	if v.Str(paramRootfs) == rootBlock {
		t.OwnRoot, t.CopiesRoot = v.Str(paramRootDisk) != auto, v.Str(paramRootDisk) == rootCopy
	}
	accel := v.Str(paramAccel)
	switch accel {
	case accelKVM:
		t.Emulated = record.No
	case accelTCG:
		t.Emulated = record.Yes
	default:
		found, _ := readVerdict(filepath.Join(k.cfg.CacheDir, verdictFile))
		accel = found.Accel
	}
	switch {
	case v.Str(paramStart) == startSnapshot:
		t.Takes = takesSnapshot
	case accel == accelKVM:
		t.Takes = takesKVM
	}
	return t
}

// Base implements sandbox.Definable.
func (*Hypervisor) Base() (word, about string) {
	return "vm", "a virtual machine by another QEMU, or by cloud-hypervisor"
}

// Keys implements sandbox.Definable.
func (*Hypervisor) Keys() []param.Param {
	return sandbox.RuntimeKeys("name or path of a QEMU or a cloud-hypervisor; the distribution's QEMU unless said", "arguments of it, behind tare's own")
}

// Define implements sandbox.Definable.
func (k *Hypervisor) Define(name string, keys param.Values) (sandbox.Kind, error) {
	own := k.cfg
	own.Name, own.Runtime, own.Args = name, keys.Str(sandbox.KeyRuntime), keys.List(sandbox.KeyArgs)
	own.CacheDir = filepath.Join(own.CacheDir, "own", name)
	return New(own), nil
}

// files are what the machines boot from.
func (k *Hypervisor) files(ctx context.Context) (boot.Files, error) {
	if k.cfg.Boot == nil {
		return boot.Files{}, errors.New("no source of a guest kernel is set")
	}
	f, ok, err := k.cfg.Boot.Find()
	if err == nil && !ok {
		f, err = k.cfg.Boot.Get(ctx)
	}
	if err != nil {
		return f, fmt.Errorf("the guest's kernel: %w", err)
	}
	return f, nil
}

var (
	_ sandbox.Launcher  = (*Hypervisor)(nil)
	_ sandbox.Definable = (*Hypervisor)(nil)
	_ sandbox.Booter    = (*instance)(nil)
)
