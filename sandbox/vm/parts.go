package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tare/sandbox/vm/boot"
)

// Part is something that machines are made of, for `tare doctor`.
type Part struct {
	Name, Detail string
	Err          error // it is missing: what that means, and what mends it
}

// Parts looks for everything that machines can use. It downloads nothing and boots
// nothing; cache is Config.CacheDir. About KVM it tells what a Check before it has found out.
func Parts(ctx context.Context, source boot.Source, cache string) []Part {
	q, err := findQEMU(ctx, "")
	out := []Part{{"QEMU", strings.TrimSpace(q.path + " " + q.version), err}, kvmPart(cache)}
	if err == nil && !q.maps[busBlk] {
		out = append(out, Part{Name: "I/O threads", Err: fmt.Errorf("QEMU %s cannot divide a disk among several I/O threads, and levels of %s that need it are skipped; install QEMU %s or later", q.version, paramThreads, mappingSince(busBlk))})
	}
	vhost := Part{Name: "vhost-net", Detail: "the kernel moves a machine's packets"}
	if f, err := os.OpenFile("/dev/vhost-net", os.O_RDWR, 0); err == nil {
		_ = f.Close()
	} else {
		vhost.Err = fmt.Errorf("QEMU handles the packets of a virtual machine itself, and each queue costs more: %w; run modprobe vhost_net if the kernel has it", err)
	}
	out = append(out, vhost)
	d, err := findVirtiofsd(ctx)
	out = append(out, Part{"virtiofsd", d.path, err})
	kernel := Part{Name: "guest kernel"}
	f, ok, err := source.Find()
	switch {
	case ok:
		kernel.Detail = f.Package
	case err == nil:
		err = errors.New("not in the cache; a study fetches it, or: tare image build " + boot.Image)
		fallthrough
	default:
		kernel.Err = err
	}
	return append(out, kernel)
}

// verdictFile in the cache folder holds a verdict.
const verdictFile = "accelerator.json"

func kvmPart(cache string) Part {
	p := Part{Name: "KVM", Detail: "a machine has booted with it"}
	const slower = "; machines are emulated (TCG): their ratios are those of an emulator"
	v, known := readVerdict(filepath.Join(cache, verdictFile))
	switch _, err := os.Stat("/dev/kvm"); {
	case errors.Is(err, fs.ErrNotExist):
		p.Err = errors.New("/dev/kvm does not exist: this host has no hardware virtualization, or needs modprobe kvm_intel or kvm_amd" + slower)
	case !known:
		p.Err = errors.New("not known: no virtual machine was tried with it, or none answered in time; if a trial boot does not answer, virtual machines are emulated (TCG)")
	case v.Accel != accelKVM:
		why, _, _ := strings.Cut(v.Why, "\n")
		p.Err = errors.New("/dev/kvm exists, but no virtual machine boots with it: " + why + slower)
	}
	return p
}
