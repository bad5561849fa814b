package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The other machine monitor that is driven. It needs KVM, has no snapshots here, and
// takes its sockets by name: relative ones, as it starts in a directory of the machine's own.
const cloudHypervisor = "cloud-hypervisor"

// oldestCLH is the least version of cloud-hypervisor: the first that can be told what is in
// a disk's file (image_type), in the place of guessing. 54 was looked at.
const oldestCLH = 52

// vsockFile is cloud-hypervisor's own socket in its directory. For a connection of the
// guest's to a port it looks for a socket of this name, _ and the port:
// https://github.com/cloud-hypervisor/cloud-hypervisor/blob/main/docs/vsock.md.
const vsockFile = "vsock"

// guestCID is the guest's address. It means nothing outside of its own machine.
const guestCID = 3

var versionOfCLH = regexp.MustCompile(`^cloud-hypervisor v?(([0-9]{1,4})\.[0-9]{1,4}[^\s]{0,100})`)

// parseVersionCLH reads --version; ok is false if it is another program's:
//
//	cloud-hypervisor v54.0.0
func parseVersionCLH(text string) (q qemu, ok bool, err error) {
	m := versionOfCLH.FindStringSubmatch(text)
	if m == nil {
		return q, false, nil
	}
	if q.major, err = strconv.Atoi(m[2]); err != nil {
		return q, true, err
	}
	q.vmm, q.version, q.confines = cloudHypervisor, m[1], true
	if q.major < oldestCLH {
		err = fmt.Errorf("cloud-hypervisor %s is too old; %d.0 or later is needed", q.version, oldestCLH)
	}
	return q, true, err
}

// takes refuses what a machine monitor does not have.
func (q qemu) takes(o options) error {
	switch {
	case q.vmm != cloudHypervisor:
		return nil
	case o.accel == accelTCG:
		return fmt.Errorf("%s = %s: cloud-hypervisor cannot emulate a processor; write %s: %s, or leave it out", paramAccel, accelTCG, paramAccel, accelKVM)
	case o.luks || o.threads > 0 || o.cache != "" || o.aio != "" || o.diskQueues > 0 || o.bus == busSCSI:
		return fmt.Errorf("%s, %s, %s, %s, %s and %s are QEMU's: cloud-hypervisor has a thread for each disk, and encrypts none", paramThreads, paramDisk, paramCache, paramAIO, paramDiskQ, paramBus)
	case o.snapshot:
		return fmt.Errorf("%s = %s: only QEMU can save virtual machines; write %s: %s", paramStart, startSnapshot, paramStart, startBoot)
	}
	return nil
}

// lineCLH is cloud-hypervisor's command line: docs/cpu.md, memory.md, fs.md and vsock.md of its
// repository, and `cloud-hypervisor --help`. A disk's path is a link in h.dir, so that no
// character of it has a meaning of its own.
func (h *hardware) lineCLH() (*line, error) {
	l := &line{}
	l.add("--api-socket", fmt.Sprintf("fd=%d", l.fd(h.api)), "--event-monitor", fmt.Sprintf("fd=%d", l.fd(h.events)))
	l.add("--cpus", fmt.Sprintf("boot=%d,max=%d", h.vcpus, h.maxVCPUs))
	memory := fmt.Sprintf("size=%dM", h.memory>>20)
	if h.shared {
		memory += ",shared=on"
	}
	if more := h.maxMemory - h.memory; more > 0 {
		// One block of memory more: what is plugged in begins at one (docs/hotplug.md).
		memory += fmt.Sprintf(",hotplug_size=%dM", (more+blockSize)>>20)
	}
	l.add("--memory", memory)
	l.add("--kernel", h.files.Kernel, "--initramfs", h.files.Initramfs, "--cmdline", kernelLine(h.accel))
	l.add("--console", "off", "--serial", fmt.Sprintf("file=/proc/self/fd/%d", l.fd(h.console)))
	l.add("--rng", "src=/dev/urandom")
	l.add("--vsock", fmt.Sprintf("cid=%d,socket=%s", guestCID, vsockFile))
	for _, s := range h.shares {
		l.add("--fs", fmt.Sprintf("tag=%s,socket=%s,num_queues=1,queue_size=1024", s.tag, s.socket))
	}
	for _, d := range h.disks {
		name := d.serial + ".disk"
		if err := os.Symlink(d.path, filepath.Join(h.dir, name)); err != nil {
			return nil, err
		}
		disk := fmt.Sprintf("path=%s,serial=%s,image_type=raw", name, d.serial)
		if d.over != "" {
			disk = fmt.Sprintf("path=%s,serial=%s,image_type=qcow2,backing_files=on", name, d.serial)
		}
		if d.frozen {
			disk += ",readonly=on"
		}
		l.add("--disk", disk)
	}
	if h.tap != nil {
		n := len(h.tap.Files)
		l.add("--net", fmt.Sprintf("fd=[%s],mac=%s,num_queues=%d", strings.ReplaceAll(l.fds(h.tap.Files), ":", ","), h.tap.MAC, 2*n))
	}
	l.add(h.args...)
	return l, nil
}
