// Package volume describes storage that a workload asks for and a sandbox gets.
//
// The data path: 1. a workload's role lists its volumes; 2. the site makes room for each
// of them on its medium; 3. the sandbox mounts or attaches them at Path.
package volume

// Volume is storage that a role asks for. The sandboxes of a role share its volumes.
type Volume struct {
	Name   string // a word of letters and digits; unique within the role
	Mode   Mode
	Medium Medium
	Size   int64  // bytes; of a Block volume or an Image
	Device string // path of the given device, of the medium Device
	// Overwrite is what the given device may hold although it is lost, as its refusal names it: its kind
	// and its identity, such as ext4 0b7d-42aa; "": nothing.
	Overwrite string

	// Of the medium Bind:
	Host     string // the user's directory, an absolute path on the host
	At       string // where the sandbox has it, an absolute path; "": as for other volumes
	ReadOnly bool
}

// Mode is how a sandbox sees a volume.
type Mode string

// Modes, by the names of Kubernetes' volumeMode.
const (
	Filesystem Mode = ""      // a directory
	Block      Mode = "block" // a device
)

// Medium is what a volume is stored on.
type Medium string

// Media.
const (
	Disk   Medium = ""       // a directory of the disk to be measured, or a file in it for a Block volume
	Memory Medium = "memory" // the same on a memory file system
	Image  Medium = "image"  // a file on the disk with a file system of its own (ext4)
	Device Medium = "device" // a block device that the user gives; its contents are lost
	Bind   Medium = "bind"   // a directory that the user gives; it stays
)

// Data is the name of the volume that most workloads use.
const Data = "data"

// Root is where the sandbox has the volumes that are not Data.
const Root = "/volumes"

// HostRoot is the name of the image that is the host's own root file system, read-only.
const HostRoot = "host"

// Path is where the sandbox has the volume: At if that is set, /data for the volume of that
// name, else a directory in /volumes; a device in /dev.
func (v Volume) Path() string {
	switch {
	case v.At != "":
		return v.At
	case v.Mode == Block:
		return "/dev/" + v.Name
	case v.Name == Data:
		return "/" + Data
	}
	return Root + "/" + v.Name
}

// AtData is one volume, at /data.
func AtData(m Medium) []Volume { return []Volume{{Name: Data, Medium: m}} }
