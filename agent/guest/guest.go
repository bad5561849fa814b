// Package guest is tare as the first process of a virtual machine: its init and
// its agent.
//
// The data path: 1. the kernel starts /init of the initramfs, which is this
// program; 2. Main mounts what a kernel offers, loads the modules of /modules in
// the order of /modules/order, and opens the virtio port PortName, or VsockPort; 3. the
// agent serves that port, with this package's operations in addition to its own;
// 4. OpSetUp sets up network, root file system and /data, OpPlug what was plugged in
// since; 5. commands run in that root; 6. when the channel ends, the machine powers off.
//
// The initramfs is made by sandbox/vm/boot, the calls come from sandbox/vm.
package guest

import (
	"net/netip"
	"time"
)

// PortName is the virtio-serial port that leads to the host.
const PortName = "tare.agent"

// VsockPort is the host's vsock port, for machines without PortName: some VMMs have no
// virtio-serial ports, such as cloud-hypervisor.
const VsockPort = 8273

// Operations of the guest's agent.
const (
	OpSetUp = "set-up" // body: Setup; answer: Up; once
	OpPlug  = "plug"   // body: Plug; answer: Up
)

// Setup configures a guest. It is sent after the agent's hello, so that a machine that was
// saved right after its hello can become any sandbox.
type Setup struct {
	Hostname string       `json:"hostname"`
	Now      time.Time    `json:"now"` // the guest's wall clock is set to it
	Address  netip.Prefix `json:"address,omitzero"`
	MTU      int          `json:"mtu,omitempty"`
	MAC      string       `json:"mac,omitempty"`                // of eth0; a machine from a snapshot has the saved one's
	Memory   int64        `json:"memory_limit_bytes,omitempty"` // of all commands together; 0: no limit
	Root     Mount        `json:"root"`
	OwnRun   bool         `json:"own_run,omitempty"` // an empty /run in memory
	Volumes  []Volume     `json:"volumes,omitempty"`
}

// Mount is a file system from the host.
type Mount struct {
	Kind     string `json:"kind"`   // MountVirtiofs or MountBlock
	Source   string `json:"source"` // the virtiofs tag, or the serial of the disk
	Writable bool   `json:"writable"`
	FS       string `json:"fs,omitempty"` // of a MountBlock: FSExt4, also if empty, or FSXFS
}

// Volume is storage from the host, and where the commands have it: a folder, or a device if
// Device is set.
type Volume struct {
	Mount
	Target string `json:"target"` // such as /data or /dev/disk
	Device bool   `json:"device,omitempty"`
}

// Kinds of Mount.
const (
	MountVirtiofs = "virtiofs"
	MountBlock    = "block"
)

// File systems of a MountBlock.
const (
	FSExt4 = "ext4"
	FSXFS  = "xfs"
)

// Plug is the total that must be online, hot-plugged parts included. The operation waits
// for it, at most ten seconds.
type Plug struct {
	CPUs   int   `json:"cpus"`
	Memory int64 `json:"memory_bytes"` // of the machine; the kernel keeps some for itself
}

// Up describes the guest.
type Up struct {
	Kernel string  `json:"kernel"`       // uname -r
	CPUs   int     `json:"cpus"`         // online
	Memory int64   `json:"memory_bytes"` // MemTotal
	Boot   float64 `json:"boot_s"`       // from the kernel's start until Main ran
	Ready  float64 `json:"ready_s"`      // from the kernel's start until the agent said hello
}
