package vm

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"tare/host/freemem"
	"tare/param"
	"tare/sandbox"
	"tare/volume"
)

// CheckOptions implements sandbox.Chooser.
func (k *Hypervisor) CheckOptions(given map[string]string) error {
	_, err := k.read(sandbox.Spec{Want: sandbox.Want{Options: given}}, mostVCPUs)
	return err
}

// CheckHere implements sandbox.Chooser.
func (k *Hypervisor) CheckHere(ctx context.Context, spec sandbox.Spec) error {
	o, q, err := k.chosen(ctx, spec)
	if err != nil {
		return err
	}
	if err := o.checkVolumes(spec.Volumes, q); err != nil {
		return err
	}
	if spec.Image == volume.HostRoot && o.rootfs == rootBlock {
		return o.noDirectories("/")
	}
	if err := o.checkRoom(spec.Beside + 1); err != nil {
		return err
	}
	if o.rootfs == rootVirtiofs {
		if _, err := k.findVirtiofsd(ctx); err != nil {
			return fmt.Errorf("%s = %s: %w", paramRootfs, rootVirtiofs, err)
		}
	}
	if o.accel != accelKVM && q.vmm != cloudHypervisor {
		return nil
	}
	return k.kvmHere(ctx, q)
}

// checkRoom refuses several machines at once that the host's memory does not hold.
func (o *options) checkRoom(machines int) error {
	if machines < 2 {
		return nil
	}
	available, err := freemem.Read()
	if err != nil {
		return fmt.Errorf("cannot tell how many machines this host's memory holds: %w", err)
	}
	if each := o.size.MemoryBoot + o.plug; each*int64(machines) > available {
		return fmt.Errorf("%d machines with %s each do not fit into this host's available memory, which is %s; use fewer copies, or a smaller %s",
			machines, param.FormatSize(each), param.FormatSize(available>>20<<20), paramMemory)
	}
	return nil
}

// chosen reads what a sandbox asks for, and finds the program that runs such a machine.
func (k *Hypervisor) chosen(ctx context.Context, spec sandbox.Spec) (o options, q qemu, err error) {
	if o, err = k.read(spec, hostCPUs()); err != nil {
		return o, q, err
	}
	if q, err = k.findQEMU(ctx); err != nil {
		return o, q, err
	}
	return o, q, q.takes(o)
}

// kvmHere refuses KVM where it is not there, or where a trial boot has shown that it does
// not work: a trial without an end shows nothing, and the cell is measured.
func (k *Hypervisor) kvmHere(ctx context.Context, q qemu) error {
	instead := "write " + paramAccel + ": " + auto + ", or " + accelTCG
	if q.vmm == cloudHypervisor {
		instead = "cloud-hypervisor emulates no processor: leave it out on this host"
	}
	here, err := haveKVM()
	if err != nil {
		return err
	}
	if !here {
		return fmt.Errorf("%s = %s: /dev/kvm does not exist or must not be used; %s", paramAccel, accelKVM, instead)
	}
	f, err := k.files(ctx)
	if err != nil {
		return err
	}
	if found, err := k.accelerator(ctx, auto, q, f); err != nil || found == accelKVM {
		return err
	}
	v, ok := readVerdict(filepath.Join(k.cfg.CacheDir, verdictFile))
	if !ok || v.Accel == accelKVM {
		return nil
	}
	return fmt.Errorf("%s = %s: %s; %s", paramAccel, accelKVM, cmp.Or(v.Why, errNoKVM.Error()), instead)
}

var _ sandbox.Chooser = (*Hypervisor)(nil)
