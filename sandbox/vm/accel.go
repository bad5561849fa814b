package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tare/internal/cgroup"
	"tare/internal/spawn"
	"tare/sandbox/vm/boot"
)

// trialWithin bounds the boot that KVM is tried by: where it works the agent answers
// within two seconds.
const trialWithin = 15 * time.Second

// verdict is what was found out about KVM; it holds until the host boots again or has
// another QEMU or guest kernel.
type verdict struct {
	Boot  string `json:"boot_id"`
	QEMU  string `json:"qemu"`
	Guest string `json:"guest"`
	Accel string `json:"accelerator"`
	Why   string `json:"why,omitempty"` // KVM does not work
}

// accelerator returns kvm or tcg for a wish. /dev/kvm may be there and start no
// machine, as inside of many clouds' machines, so that only a boot tells. The answer is
// kept in the cache folder and not among the run-time state: it is no leftover.
func (k *Kind) accelerator(ctx context.Context, wish string, q qemu, f boot.Files) (string, error) {
	if wish != auto {
		return wish, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.accel != "" {
		return k.accel, nil
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	now := verdict{Boot: strings.TrimSpace(string(id)), QEMU: q.version, Guest: f.Version}
	path := filepath.Join(k.cfg.CacheDir, verdictFile)
	if old, ok := readVerdict(path); ok && old.Boot == now.Boot && old.QEMU == now.QEMU && old.Guest == now.Guest {
		k.accel = old.Accel
		return k.accel, nil
	}
	now.Accel = accelKVM
	if err := k.trial(ctx, q, f); ctx.Err() != nil {
		return "", ctx.Err()
	} else if err != nil {
		now.Accel, now.Why = accelTCG, err.Error()
	}
	if err := now.write(path); err != nil {
		return "", err
	}
	k.accel = now.Accel
	return k.accel, nil
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
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(part, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// trial boots the smallest machine with KVM and waits for its agent.
func (k *Kind) trial(ctx context.Context, q qemu, f boot.Files) (err error) {
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_ = dev.Close()
	name := fmt.Sprintf("check-vm-%d-kvm", os.Getpid())
	group, hierarchy, err := spawn.Group(name, cgroup.Limits{})
	if err != nil {
		return err
	}
	late := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, group.Destroy(late)) }()
	ctx, cancel := context.WithTimeout(ctx, trialWithin)
	defer cancel()
	m, err := power(ctx, q.path, &hardware{
		name: name, accel: accelKVM, files: f, args: k.cfg.Args, vcpus: 1, maxVCPUs: 1, memory: leastMemoryMiB << 20, maxMemory: leastMemoryMiB << 20,
	}, inGroup(hierarchy, group))
	defer func() { err = errors.Join(err, m.close(late)) }()
	if err == nil {
		err = m.greet(ctx)
	}
	if err != nil && m != nil {
		err = m.explain(err)
	}
	return err
}
