package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"tare/agent/guest"
	"tare/host/cgroup"
	"tare/host/network"
	"tare/host/spawn"
	"tare/param"
	"tare/sandbox"
)

// start makes a machine that is ready for commands. On an error nothing is left.
func (k *Hypervisor) start(ctx context.Context, spec sandbox.Spec) (_ *instance, err error) {
	i := &instance{kind: k, spec: spec, began: time.Now()}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if i.o, err = k.read(spec, hostCPUs()); err != nil {
		return nil, err
	}
	if i.qemu, err = k.findQEMU(ctx); err != nil {
		return nil, err
	}
	if err = i.qemu.takes(i.o); err != nil {
		return nil, err
	}
	if i.o.rootfs == rootVirtiofs {
		if i.daemon, err = k.findVirtiofsd(ctx); err != nil {
			return nil, err
		}
	}
	if i.files, err = k.files(ctx); err != nil {
		return nil, err
	}
	if i.accel, err = k.accelerator(ctx, i.o.accel, i.qemu, i.files); err != nil {
		return nil, err
	}
	i.group, i.hierarchy, err = spawn.Group(spec.Name, cgroup.Limits{CPU: i.o.size.CPUQuotaCores, CPUs: spec.CPUs})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, k.within, fmt.Errorf("it did not start within %s", param.FormatDuration(k.within)))
	defer cancel()
	h, err := i.build(ctx)
	if err != nil {
		return nil, err
	}
	if i.o.snapshot {
		if err := i.wake(ctx, h); err != nil {
			return nil, err
		}
	}
	if err = i.boot(ctx, h); err == nil {
		err = i.setUp(ctx)
	}
	if err == nil {
		return i, nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	err = i.explain(err)
	if i.o.accel == accelKVM && i.machine != nil && i.machine.client == nil && i.machine.gaveUp() {
		err = fmt.Errorf("no machine boots with KVM here; %s = %s finds out whether one does: %w", paramAccel, auto, err)
	}
	return nil, err
}

// build makes all that a machine is made of.
func (i *instance) build(ctx context.Context) (h *hardware, err error) {
	h = &hardware{
		name: i.spec.Name, vmm: i.qemu.vmm, accel: i.accel, files: i.files, args: i.kind.cfg.Args, box: i.kind.boxes(i.qemu),
		vcpus: i.o.size.VCPUsBoot, maxVCPUs: i.o.bound,
		memory: i.o.size.MemoryBoot, maxMemory: i.o.size.MemoryBoot + i.o.plug,
	}
	if h.vmm == cloudHypervisor {
		if h.dir, err = os.MkdirTemp(i.spec.Dir, "clh-"); err != nil { // mode 0700
			return nil, err
		}
		i.ownFiles = append(i.ownFiles, h.dir)
		if h.dir, err = filepath.Abs(h.dir); err != nil {
			return nil, err
		}
	}
	if err := i.serveRoot(ctx, h); err != nil {
		return nil, err
	}
	if err := i.serveVolumes(ctx, h); err != nil {
		return nil, err
	}
	h.shares = i.shares
	return h, i.connect(h)
}

// serveRoot gives the machine its root.
func (i *instance) serveRoot(ctx context.Context, h *hardware) error {
	if i.o.rootfs == rootBlock {
		return i.serveRootDisk(ctx, h)
	}
	i.root = guest.Mount{Kind: guest.MountVirtiofs, Source: tagRoot, Writable: i.spec.Upper != ""}
	h.shared = true
	view := func() error { return spawn.MountRoot(i.spec) }
	if err := i.share(h, tagRoot, i.spec.Root, view); err != nil {
		return err
	}
	return nil
}

func (i *instance) share(h *hardware, tag, dir string, prepare func() error) error {
	open := handed(i.spec.Dir)
	if h.vmm == cloudHypervisor {
		open = named(h.dir, tag+".sock")
	}
	s, err := i.daemon.serve(tag, dir, open, i.spec.Name, inGroup(i.hierarchy, i.group), prepare)
	if s != nil {
		i.shares = append(i.shares, s)
	}
	return err
}

// connect puts the machine on the study's bridge.
func (i *instance) connect(h *hardware) (err error) {
	if i.spec.Network.Path == "" {
		return nil
	}
	if i.tap, err = network.Tap(i.spec.Network, i.o.queues); err != nil {
		return err
	}
	h.tap = i.tap
	if h.vmm == cloudHypervisor {
		return nil // it moves the packets itself
	}
	if i.vhost, err = openVhost(i.o.queues); err != nil {
		return err
	}
	h.vhost = i.vhost
	return nil
}

// wake has the machine resume a saved one.
func (i *instance) wake(ctx context.Context, h *hardware) error {
	path, err := i.snapshot(ctx, h)
	if err != nil {
		return err
	}
	f, err := os.Open(path) //nolint:gosec // in our own cache
	if err != nil {
		return err
	}
	h.incoming, i.incoming = f, f
	return nil
}

// boot starts the machine and waits until the agent answers. What its monitor was given is its own
// then.
func (i *instance) boot(ctx context.Context, h *hardware) error {
	if err := i.turnOn(ctx, h); err != nil {
		return err
	}
	if err := i.pinThreads(ctx); err != nil {
		return err
	}
	if h.incoming != nil {
		if err := i.machine.resume(ctx); err != nil {
			return err
		}
	}
	return i.machine.greet(ctx)
}

func (i *instance) turnOn(ctx context.Context, h *hardware) (err error) {
	i.machine, err = power(ctx, i.qemu.path, h, inGroup(i.hierarchy, i.group))
	if err != nil {
		return err
	}
	if err := i.handedOver(); err != nil {
		return err
	}
	for _, s := range i.shares {
		go i.machine.needs(s)
	}
	return nil
}

// handedOver closes what QEMU has: a tap lives as long as anybody has it open.
func (i *instance) handedOver() error {
	var err error
	for _, s := range i.shares {
		err = errors.Join(err, s.handedOver())
	}
	if i.tap != nil {
		err = errors.Join(err, i.tap.Close())
	}
	for _, f := range i.vhost {
		err = errors.Join(err, ignoreClosed(f.Close()))
	}
	if i.incoming != nil {
		err = errors.Join(err, ignoreClosed(i.incoming.Close()))
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// setUp plugs in what the limits add, and tells the guest who it is.
func (i *instance) setUp(ctx context.Context) error {
	if err := i.machine.plug(ctx, i.o, len(i.shares) > 0); err != nil {
		return err
	}
	s := guest.Setup{Hostname: "tare", Now: time.Now(), Memory: i.spec.MemoryLimit, Root: i.root, OwnRun: i.spec.OwnRun(), Volumes: i.volumes}
	if i.tap != nil {
		s.Address, s.MTU, s.MAC = i.tap.Addr, i.tap.MTU, i.tap.MAC.String()
	}
	if err := i.machine.client.Call(ctx, guest.OpSetUp, s, &i.up); err != nil {
		return err
	}
	if i.o.size.VCPUsHotplugged > 0 || i.o.plug > 0 {
		want := guest.Plug{CPUs: i.o.size.VCPUsTotal, Memory: i.o.size.MemoryBoot + i.o.plug}
		if err := i.machine.client.Call(ctx, guest.OpPlug, want, &i.up); err != nil {
			return err
		}
	}
	i.phases = i.took(time.Now())
	return nil
}

// took divides the time from Start to now. When the guest's kernel ran is known from
// the guest: seconds on its own clock, which begins with the kernel. A machine that
// is resumed has no such step: reading its state is in its place.
func (i *instance) took(ready time.Time) []sandbox.BootPhase {
	m := i.machine
	if i.o.snapshot {
		return []sandbox.BootPhase{
			{Name: "process", Took: m.greeted.Sub(i.began)},
			{Name: "resume", Took: m.resumed.Sub(m.greeted)},
			{Name: "agent", Took: m.hello.Sub(m.resumed)},
			{Name: "plug", Took: ready.Sub(m.hello)},
		}
	}
	toHello := m.hello.Sub(m.greeted)
	agent := time.Duration((i.up.Ready - i.up.Boot) * float64(time.Second))
	agent = min(max(agent, 0), toHello)
	return []sandbox.BootPhase{
		{Name: "process", Took: m.greeted.Sub(i.began)},
		{Name: "kernel", Took: toHello - agent},
		{Name: "agent", Took: agent},
		{Name: "plug", Took: ready.Sub(m.hello)},
	}
}
