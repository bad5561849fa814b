package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
	"tare/host/spawn"
	"tare/sandbox/vm/boot"
)

// trialWithin bounds the boot that KVM is tried by: where it works the agent answers
// within two seconds.
const trialWithin = 15 * time.Second

// verdict is what a trial has shown about KVM; it holds until the host boots again or
// has another QEMU, other arguments of it or another guest kernel.
type verdict struct {
	Boot  string `json:"boot_id"`
	QEMU  string `json:"qemu"`
	Path  string `json:"path"`
	Args  string `json:"args,omitempty"` // the study's own, quoted
	Guest string `json:"guest"`
	Accel string `json:"accelerator"`
	Why   string `json:"why,omitempty"` // KVM does not work
}

// of says whether it is about the same things as another verdict.
func (v verdict) of(w verdict) bool {
	return v.Boot == w.Boot && v.QEMU == w.QEMU && v.Path == w.Path && v.Args == w.Args && v.Guest == w.Guest
}

// errNoKVM is a trial in which QEMU gave up by itself: the one failure that says
// something about KVM.
var errNoKVM = errors.New("no virtual machine boots with KVM")

// errNoAnswer is a trial that had no end in its time. A busy host does that as well, so
// that it holds for this process only.
var errNoAnswer = errors.New("the trial boot did not end")

// accelerator returns kvm or tcg for a wish. /dev/kvm may be there and start no
// machine, as inside of many clouds' machines, so that only a boot tells. The answer is
// kept in the cache folder and not among the run-time state: it is not a leftover. What is
// no answer is not kept; an error is one of this host's or of tare's own.
func (k *Hypervisor) accelerator(ctx context.Context, wish string, q qemu, f boot.Files) (string, error) {
	if wish != auto {
		return wish, nil
	}
	accel, err := k.found(ctx, q, f)
	if err == nil && accel == accelTCG && q.vmm == cloudHypervisor {
		return "", fmt.Errorf("cloud-hypervisor needs KVM and cannot emulate a processor: %s; leave it out on this host", k.why)
	}
	return accel, err
}

// found is accelerator for auto.
func (k *Hypervisor) found(ctx context.Context, q qemu, f boot.Files) (string, error) {
	select {
	case k.trying <- struct{}{}:
		defer func() { <-k.trying }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the trial boot: %w", context.Cause(ctx))
	}
	if k.accel != "" {
		return k.accel, nil
	}
	switch here, err := haveKVM(); {
	case err != nil:
		return "", err
	case !here: // until a module is loaded
		k.accel, k.why = accelTCG, "/dev/kvm is not there, or not to be used"
		return k.accel, nil
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	now := verdict{Boot: strings.TrimSpace(string(id)), QEMU: q.version, Path: q.path, Guest: f.Version}
	if len(k.cfg.Args) > 0 {
		now.Args = fmt.Sprintf("%q", k.cfg.Args)
	}
	path := filepath.Join(k.cfg.CacheDir, verdictFile)
	if old, ok := readVerdict(path); ok && old.of(now) {
		k.accel, k.why = old.Accel, old.Why
		return k.accel, nil
	}
	accel, keep, err := now.judge(ctx, k.trial(ctx, q, f))
	if err != nil {
		return "", err
	}
	if keep {
		if err := accel.write(path); err != nil {
			return "", err
		}
	}
	k.accel, k.why = accel.Accel, accel.Why
	return k.accel, nil
}

// judge makes a verdict of what a trial said; keep says whether it is one for later.
func (v verdict) judge(ctx context.Context, said error) (_ verdict, keep bool, err error) {
	v.Accel = accelKVM
	switch {
	case said == nil:
		return v, true, nil
	case ctx.Err() != nil:
		return v, false, ctx.Err()
	case errors.Is(said, errNoKVM):
		v.Accel, v.Why = accelTCG, said.Error()
		return v, true, nil
	case errors.Is(said, errNoAnswer):
		v.Accel, v.Why = accelTCG, said.Error()
		return v, false, nil
	}
	return v, false, fmt.Errorf("checking whether KVM works: %w", said)
}

// haveKVM says whether /dev/kvm is there and may be used. Too many open files say
// nothing about that, and are an error.
func haveKVM() (bool, error) {
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	switch {
	case err == nil:
		return true, dev.Close()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return false, nil
	}
	return false, err
}

// Forget has the next Check try KVM again if it did not work: what was in its way may be
// mended. cache is Config.CacheDir.
func Forget(cache string) error {
	path := filepath.Join(cache, verdictFile)
	if v, ok := readVerdict(path); !ok || v.Accel == accelKVM {
		return nil
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Found returns what the last trial boot on this host has shown to run machines, and the boot
// of the host, by its id, that this holds for; "" if none was tried. cache is Config.CacheDir.
func Found(cache string) (accel, bootID string) {
	v, ok := readVerdict(filepath.Join(cache, verdictFile))
	if !ok {
		return "", ""
	}
	return v.Accel, v.Boot
}

// maxVerdict bounds the file, in bytes.
const maxVerdict = 64 << 10

func readVerdict(path string) (v verdict, ok bool) {
	b, err := os.ReadFile(path) //nolint:gosec // in our own cache
	if err != nil || len(b) > maxVerdict || json.Unmarshal(b, &v) != nil {
		return v, false
	}
	return v, v.Accel == accelKVM || v.Accel == accelTCG
}

func (v verdict) write(path string) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as the rest of the cache
		return fmt.Errorf("cannot make the cache: %w", err)
	}
	// One name for all: what a killed process left is written over. Two at once would
	// write the same.
	part := path + ".part"
	if err := os.WriteFile(part, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// trial boots the smallest machine with KVM and waits for its agent. The error is
// errNoKVM, errNoAnswer, or what hindered the trial.
func (k *Hypervisor) trial(ctx context.Context, q qemu, f boot.Files) (err error) {
	name := fmt.Sprintf("check-%s-%d-kvm", k.Name(), os.Getpid())
	group, hierarchy, err := spawn.Group(name, cgroup.Limits{})
	if err != nil {
		return err
	}
	clean := func(step func(context.Context) error) {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if failed := step(late); failed != nil {
			err = fmt.Errorf("cleaning up: %w; %w", failed, err)
		}
	}
	defer clean(group.Destroy)
	var dir string
	if q.vmm == cloudHypervisor {
		if err := os.MkdirAll(k.cfg.StateDir, 0o700); err != nil {
			return err
		}
		if dir, err = os.MkdirTemp(k.cfg.StateDir, "clh-"); err != nil {
			return err
		}
		defer clean(func(context.Context) error { return os.RemoveAll(dir) })
	}
	within, cancel := context.WithTimeout(ctx, trialWithin)
	defer cancel()
	m, err := power(within, q.path, &hardware{
		name: name, vmm: q.vmm, dir: dir, accel: accelKVM, files: f, args: k.cfg.Args, box: k.boxes(q), vcpus: 1, maxVCPUs: 1, memory: leastMemoryMiB << 20, maxMemory: leastMemoryMiB << 20,
	}, inGroup(hierarchy, group))
	defer clean(m.close)
	if err == nil {
		err = m.greet(within)
	}
	if err == nil || m == nil {
		return err
	}
	late := within.Err() != nil
	err = m.explain(err)
	switch {
	case m.gaveUp():
		return fmt.Errorf("%w: %w", errNoKVM, err)
	case late:
		return fmt.Errorf("%w within %s: %w", errNoAnswer, trialWithin, err)
	}
	return err
}
