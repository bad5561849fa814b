package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/rootfs"
	"tare/host/spawn"
)

// theQEMU is the machine monitor that is driven where nothing else is asked for.
const theQEMU = "QEMU"

// qemu is the machine monitor that this host has: QEMU, or the one that a study names.
type qemu struct {
	path         string
	vmm          string // theQEMU or cloudHypervisor
	major, minor int
	version      string          // "7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"
	confines     bool            // it has -sandbox, here; cloud-hypervisor confines itself
	maps         map[string]bool // buses whose queues it maps to several I/O threads
}

// mappingOption maps a disk's queues to several I/O threads, in turn: qapi/virtio.json,
// IOThreadVirtQueueMapping.
const mappingOption = "iothread-vq-mapping"

// mappingSince is the first version of QEMU that has mappingOption for a bus.
func mappingSince(bus string) string {
	if bus == busSCSI {
		return "10.0"
	}
	return "9.0"
}

// mapped asks a QEMU which buses have mappingOption. Distributions add the option to older versions.
func mapped(ctx context.Context, path string) map[string]bool {
	out := map[string]bool{}
	for bus, device := range map[string]string{busBlk: "virtio-blk-pci", busSCSI: "virtio-scsi-pci"} {
		text, err := says(ctx, path, "-device", device+",help")
		out[bus] = err == nil && strings.Contains(text, mappingOption)
	}
	return out
}

// confined keeps QEMU, which runs as root, from calls that it has no need of once it runs
// (docs/system/security.rst): what libvirt gives it. Kata has it as an option.
const confined = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// confines says whether a QEMU was built with -sandbox and the host's kernel has what that
// needs: otherwise it does not know the option.
func confines(ctx context.Context, path string) bool {
	_, err := says(ctx, path, "-sandbox", confined, "-machine", "help")
	return err == nil
}

// oldest is the least version whose options are all used here; 7.2 and 10.0 were tried.
const (
	oldestMajor = 6
	oldestMinor = 2
)

const installQEMU = "apt-get install --no-install-recommends qemu-system-x86"

// setupQEMU is where `make setup` puts a newer QEMU than the distribution's.
const setupQEMU = rootfs.ToolDir + "/../qemu/usr/bin/qemu-system-x86_64"

// findQEMU finds the newest QEMU of this host. own names a QEMU of the study to use instead, or is "".
func findQEMU(ctx context.Context, own string) (found qemu, err error) {
	names, instead := []string{"qemu-system-x86_64", "/usr/libexec/qemu-kvm", setupQEMU}, installQEMU
	if own != "" {
		names, instead = []string{own}, "write runtime: and the path of a QEMU or a cloud-hypervisor"
	}
	for _, name := range names {
		path, ok := rootfs.Lookup(name)
		if !ok {
			continue
		}
		out, err := says(ctx, path, "--version")
		if err != nil {
			return qemu{}, fmt.Errorf("%w; %s", err, instead)
		}
		q, err := parseVersion(out)
		if err != nil {
			return qemu{}, fmt.Errorf("%s: %w; %s", path, err, instead)
		}
		q.path = path
		if found.path == "" || q.newer(found) {
			found = q
		}
	}
	switch {
	case found.path == "" && own != "":
		return found, fmt.Errorf("this host has no %s; install it, or correct runtime in the study", own)
	case found.path == "":
		return found, fmt.Errorf("this host has no qemu-system-x86_64; %s", installQEMU)
	case found.vmm == theQEMU:
		found.confines, found.maps = confines(ctx, found.path), mapped(ctx, found.path)
	}
	return found, nil
}

func (q qemu) newer(than qemu) bool {
	return q.major > than.major || q.major == than.major && q.minor > than.minor
}

// sayWithin bounds how long a program may take to say what it is.
const sayWithin = 5 * time.Second

// says is what a program prints on standard output when it is asked what it is.
func says(ctx context.Context, path string, question ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sayWithin, fmt.Errorf("no answer within %s", sayWithin))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, question...) //nolint:gosec // the host's own program
	cmd.WaitDelay = time.Second                        // what it has started may have its output open
	var tail spawn.Tail
	cmd.Stderr = &tail
	out, err := cmd.Output()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w%s", path, strings.Join(question, " "), err, spawn.Says(&tail))
	}
	return string(out), nil
}

var versionLine = regexp.MustCompile(`^QEMU emulator version (([0-9]{1,4})\.([0-9]{1,4})[^\n]{0,100})`)

// parseVersion reads the first line of --version:
//
//	QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)
func parseVersion(text string) (qemu, error) {
	if q, ok, err := parseVersionCLH(text); ok {
		return q, err
	}
	if strings.HasPrefix(text, "Firecracker ") {
		return qemu{}, errors.New("not supported: Firecracker cannot hot-plug processors or share directories; use QEMU or cloud-hypervisor")
	}
	m := versionLine.FindStringSubmatch(text)
	if m == nil {
		return qemu{}, fmt.Errorf("its --version is neither QEMU's nor cloud-hypervisor's, and tare supports no other virtual machine monitor: %.60q", text)
	}
	q := qemu{vmm: theQEMU}
	var errs [2]error
	q.major, errs[0] = strconv.Atoi(m[2])
	q.minor, errs[1] = strconv.Atoi(m[3])
	if err := errors.Join(errs[:]...); err != nil {
		return qemu{}, err
	}
	q.version = strings.TrimSpace(m[1])
	if q.major < oldestMajor || q.major == oldestMajor && q.minor < oldestMinor {
		return qemu{}, fmt.Errorf("QEMU %s is too old; %d.%d or later is needed", q.version, oldestMajor, oldestMinor)
	}
	return q, nil
}

// openVhost opens /dev/vhost-net once for each queue. Where the host does not have it
// QEMU moves the packets itself, and the trial's facts say so.
func openVhost(queues int) ([]*os.File, error) {
	var out []*os.File
	for range queues {
		f, err := os.OpenFile("/dev/vhost-net", os.O_RDWR, 0)
		if err == nil {
			out = append(out, f)
			continue
		}
		if noVhost(err) && len(out) == 0 {
			return nil, nil
		}
		return nil, errors.Join(fmt.Errorf("opening a vhost device: %w", err), closeAll(out))
	}
	return out, nil
}

// noVhost says whether an error means that this host has no vhost-net. The node may be there
// without the module (kmod makes it from modules.devname): then it is ENODEV.
func noVhost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

func closeAll(files []*os.File) error {
	var err error
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
