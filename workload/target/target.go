// Package target says where the workloads that measure storage have their files. It is the parameter
// target of fio and files.
//
// The data path: 1. the workload declares Param with the words that it can use; 2. its Roles
// asks for Volumes, and works in Directory.
package target

import (
	"cmp"

	"tare/param"
	"tare/volume"
)

// Values of target.
const (
	Data   = "data"   // a directory of the host's disk
	Tmpfs  = "tmpfs"  // the sandbox's own /tmp
	Root   = "root"   // the root file system; the role is Writable
	Bind   = "bind"   // a directory of the host's memory file system
	Image  = "image"  // a file system in a file on the disk
	Block  = "block"  // no files: a block device on the disk
	Device = "device" // the block device that a parameter names
)

// Param returns the parameter target with these words. of says what the target holds.
func Param(of, more string, words ...string) param.Param {
	return param.Param{Name: "target", Type: param.Enum, Default: Data, Words: words,
		Help: "where " + of + ": data, a directory of the host's disk; tmpfs, the sandbox's own /tmp; root, its root file system; bind, a directory of the host's memory file system; image, a file system in a file on the disk" + more}
}

// Files are the words of targets that have files.
func Files() []string { return []string{Data, Tmpfs, Root, Bind, Image} }

// Directory is where the files are in the sandbox.
func Directory(t string) string {
	return cmp.Or(map[string]string{Tmpfs: "/tmp", Root: "/var/tmp"}[t], "/"+volume.Data)
}

// imageRoom is what a file system needs besides the files, in bytes: mainly its journal.
const imageRoom = 64 << 20

// Volumes returns the volumes that hold the files of a target, or the device. size is what they need,
// in bytes.
func Volumes(t string, size int64, device string) []volume.Volume {
	switch t {
	case Data:
		return volume.AtData(volume.Disk)
	case Bind:
		return volume.AtData(volume.Memory)
	case Image:
		return []volume.Volume{{Name: volume.Data, Medium: volume.Image, Size: size*5/4 + imageRoom}}
	case Block:
		return []volume.Volume{{Name: volume.Data, Mode: volume.Block, Size: size}}
	case Device:
		return []volume.Volume{{Name: volume.Data, Mode: volume.Block, Medium: volume.Device, Device: device, Size: size}}
	default:
		return nil
	}
}

// InMemory reports whether the files are never on a disk.
func InMemory(t string) bool { return t == Tmpfs || t == Bind }

// Cold reports whether the host's page cache is dropped between layout and load.
func Cold(t, cache string) bool { return cache == "dropped" && !InMemory(t) }
