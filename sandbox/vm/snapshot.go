package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mostSnapshots bounds the saved machines, in bytes on the disk. One has what its guest
// had written to by its hello: about 130 MB.
const mostSnapshots = 4 << 30

// snapshot returns a saved machine of this kind of hardware, making it first where there
// is none: one is booted in the sandbox's own place, and saved when its agent has said
// hello and nobody has told it who it is.
func (i *instance) snapshot(ctx context.Context, h *hardware) (string, error) {
	host, err := hostKey(h.accel)
	if err != nil {
		return "", err
	}
	key, err := h.key(i.files.Digest, i.qemu.path+" "+i.qemu.version, host)
	if err != nil {
		return "", err
	}
	// Looking for it, waiting for another who makes it, and making it, once for a size,
	// are no part of this sandbox's start.
	looked := time.Now()
	defer func() { i.began = i.began.Add(time.Since(looked)) }()
	c := folder{dir: filepath.Join(i.kind.cfg.CacheDir, "snapshots"), most: mostSnapshots}
	return c.get(ctx, key+".state", func(path string) error {
		if err := i.save(ctx, *h, path); err != nil {
			return fmt.Errorf("making the snapshot: %w", err)
		}
		return nil
	})
}

// key digests all that a saved machine must find again when it is resumed.
func (h *hardware) key(boot, qemu, host string) (string, error) {
	type saved struct {
		Serial         string
		Frozen, Layers bool
		Bytes          int64
	}
	var disks []saved
	for _, d := range h.disks {
		path := d.path
		if d.over != "" {
			path = d.over
		}
		st, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		disks = append(disks, saved{d.serial, d.frozen, d.over != "", st.Size()})
	}
	queues := 0
	if h.tap != nil {
		queues = len(h.tap.Files)
	}
	b, err := json.Marshal([]any{
		"tare-snapshot-3", boot, qemu, host, h.accel, h.args, kernelLine(h.accel), h.vcpus, h.maxVCPUs, h.memory, h.maxMemory, disks, queues, len(h.vhost),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// hostKey is what of the host is in a saved machine. KVM gives the guest the host's own
// processor, and the snapshot outlives a boot of the host with another kernel or
// microcode; an emulated processor is QEMU's.
func hostKey(accel string) (string, error) {
	if accel != accelKVM {
		return "", nil
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	return unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Version[:]) + "\n" + processor(string(info)), nil
}

// processor is what proc_cpuinfo(5) says of the first processor that a guest depends on.
func processor(info string) string {
	first, _, _ := strings.Cut(info, "\n\n")
	var out []string
	for line := range strings.Lines(first) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags", "vmx flags":
			out = append(out, strings.TrimSpace(value))
		}
	}
	return strings.Join(out, "\n")
}

// quiet is how long a guest has to see that its channel has ended, before it is saved:
// when it wakes up it must say hello again. A message on the virtio port takes it
// a millisecond or two; this is paid once a template.
const quiet = time.Second

// save boots a machine and writes its state to a file. The tap stays for the machine to
// come; a vhost device has one owner in its life.
func (i *instance) save(ctx context.Context, h hardware, path string) (err error) {
	if h.vhost, err = openVhost(len(h.vhost)); err != nil {
		return err
	}
	m, err := power(ctx, i.qemu.path, &h, inGroup(i.hierarchy, i.group))
	err = errors.Join(err, closeAll(h.vhost))
	defer func() {
		if err != nil && m != nil {
			err = m.explain(err)
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, m.close(late))
	}()
	if err != nil {
		return err
	}
	if err := m.greet(ctx); err != nil {
		return err
	}
	if err := m.channel.Close(); err != nil {
		return err
	}
	select {
	case <-time.After(quiet):
	case <-ctx.Done():
		return ctx.Err()
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // in our own cache
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, step := range []func() error{
		func() error { return m.qmp.Run(ctx, "stop", nil, nil) },
		func() error {
			return m.qmp.Run(ctx, "migrate-set-parameters", map[string]any{"max-bandwidth": 1 << 40}, nil)
		},
		func() error { return m.qmp.SendFile(ctx, "state", f) },
		func() error { return m.qmp.Run(ctx, "migrate", map[string]string{"uri": "fd:state"}, nil) },
		func() error { return m.migrated(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// look is how often QEMU is asked whether it is done.
const look = 2 * time.Millisecond

// migrated waits until the state has been written: query-migrate.
func (m *machine) migrated(ctx context.Context) error {
	return m.until(ctx, "query-migrate", func(r migration) (bool, error) {
		switch r.Status {
		case "completed":
			return true, nil
		case "failed", "cancelled":
			return false, fmt.Errorf("QEMU could not write the state: %s %s", r.Status, r.Why)
		}
		return false, nil
	})
}

// migration is an answer to query-migrate or query-status.
type migration struct {
	Status string `json:"status"`
	Why    string `json:"error-desc"`
}

// until asks until done says so.
func (m *machine) until(ctx context.Context, command string, done func(migration) (bool, error)) error {
	for {
		var r migration
		if err := m.qmp.Run(ctx, command, nil, &r); err != nil {
			return err
		}
		if ok, err := done(r); ok || err != nil {
			return err
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("QEMU did not finish saving its state: %w", ctx.Err())
		}
	}
}

// resume lets a machine run that has read its state.
func (m *machine) resume(ctx context.Context) error {
	err := m.until(ctx, "query-status", func(r migration) (bool, error) { return r.Status != "inmigrate", nil })
	if err == nil {
		err = m.qmp.Run(ctx, "cont", nil, nil)
	}
	m.resumed = time.Now()
	return err
}
