package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/agent/guest"
	"tare/host/cgroup"
	"tare/host/network"
	"tare/host/spawn"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/vm/boot"
)

// instance is one sandbox: a machine and what belongs to it on the host.
type instance struct {
	kind      *Hypervisor
	spec      sandbox.Spec
	o         options
	qemu      qemu
	daemon    virtiofsd // with rootfs = virtiofs
	files     boot.Files
	accel     string
	began     time.Time
	group     *cgroup.Group
	hierarchy *cgroup.Hierarchy
	shares    []*share
	tap       *network.TapLink
	vhost     []*os.File
	incoming  *os.File // the saved machine that it resumes; nil boots
	root      guest.Mount
	volumes   []guest.Volume
	threads   [][]int  // the I/O threads of each of the volumes' disks
	ownFiles  []string // disks that end with it
	machine   *machine
	up        guest.Up
	phases    []sandbox.BootPhase
}

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	if len(c.Args) == 0 {
		return sandbox.Exit{}, errors.New("no command given")
	}
	c.Env = spawn.Environment(i.spec, c.Env...)
	exit, err := i.machine.client.Run(ctx, c)
	if err != nil {
		return exit, fmt.Errorf("%s %s: %w", i.kind.Name(), i.spec.Name, i.explain(err))
	}
	return exit, nil
}

// explain adds to an error what became of QEMU, the guest and the daemons.
func (i *instance) explain(err error) error {
	if i.machine == nil {
		return err
	}
	err = i.machine.explain(err)
	for _, s := range i.shares {
		err = s.explain(err)
	}
	return err
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.spec.Network.Addr.Addr() }

// Scope implements sandbox.Instance.
func (i *instance) Scope() sandbox.LocalScope {
	return sandbox.LocalScope{
		Cgroups: []string{i.group.Rel()}, Limited: i.group.Rel(), Roles: ThreadRoles(), Guest: i.machine.client.Guest(),
	}
}

// Boot implements sandbox.Booter.
func (i *instance) Boot() []sandbox.BootPhase { return slices.Clone(i.phases) }

// Doubts implements sandbox.Doubter: a CPU limit plugs in as many vCPUs as it has cores,
// but the host's processors bound them.
func (i *instance) Doubts() []record.Warning {
	want, got := int(math.Ceil(i.spec.CPULimit-1e-9)), i.o.size.VCPUsHotplugged
	if got >= want || i.o.static {
		return nil
	}
	return []record.Warning{{Code: "vcpus-bound", Text: fmt.Sprintf(
		"a CPU limit of %g is to plug in %d vCPUs, and plugged in %d: this machine has %d of %d; with %s = %d it had all",
		i.spec.CPULimit, want, got, i.o.size.VCPUsTotal, i.o.bound, paramMaxVCPUs, i.o.size.VCPUsBoot+want)}}
}

// Facts implements sandbox.Instance.
func (i *instance) Facts() map[string]string {
	s := i.o.size
	f := map[string]string{
		"sandbox":              i.kind.Name(),
		record.FactAccelerator: i.accel,
		"vmm":                  i.machine.version(),
		"kernel":               i.up.Kernel,
		"kernel_package":       i.files.Package,
		"rootfs":               i.o.rootfs,
		"start":                startBoot,
		"vcpus_boot":           strconv.Itoa(s.VCPUsBoot),
		"vcpus_plugged":        strconv.Itoa(s.VCPUsHotplugged),
		"vcpus_total":          strconv.Itoa(s.VCPUsTotal),
		"memory":               param.FormatSize(s.MemoryBoot + i.o.plug),
		"cpu_quota":            "none",
	}
	if i.o.snapshot {
		f["start"] = startSnapshot
	}
	if i.o.rootfs == rootBlock {
		f[paramRootDisk] = i.o.rootDisk
		if i.o.rootDisk == auto {
			f[paramRootDisk] = "image"
			if i.spec.Upper != "" {
				f[paramRootDisk] = rootOverlay
			}
		}
	}
	f["vmm_confined"] = "no"
	if i.kind.boxes(i.qemu) {
		f["vmm_confined"] = "seccomp"
	}
	if s.CPUQuotaCores > 0 {
		f["cpu_quota"] = strconv.FormatFloat(s.CPUQuotaCores, 'g', -1, 64)
	}
	maps.Copy(f, i.diskFacts())
	if i.tap != nil {
		f["network_helper"], f["network_queues"] = strings.ToLower(i.machine.vmm), strconv.Itoa(i.o.queues)
		if len(i.vhost) > 0 {
			f["network_helper"] = "vhost"
		}
	}
	return f
}

// stopWithin bounds Stop.
const stopWithin = 30 * time.Second

// Stop implements sandbox.Instance. The guest is not asked: what it has not written
// yet nobody will read.
func (i *instance) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	err := i.group.Destroy(ctx)
	err = errors.Join(err, i.machine.close(ctx), i.handedOver())
	for _, s := range i.shares {
		err = errors.Join(err, s.close(ctx))
	}
	if err == nil {
		err = spawn.EmptyOverlay(i.spec.Upper)
	}
	for _, path := range i.ownFiles {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return fmt.Errorf("stopping %s %s: %w; `tare clean` tries again", i.kind.Name(), i.spec.Name, err)
	}
	return nil
}
