// Package volume describes storage that a workload asks for and a sandbox gets.
//
// The data path: 1. a workload's role lists its volumes; 2. the site makes room for each
// of them on its medium; 3. the sandbox mounts or attaches them at Path.
package volume

// Volume is storage that a role asks for. The sandboxes of a role share its volumes.
type Volume struct {
	Name   string // a word; unique within the role
	Medium Medium
}

// Medium is what a volume is stored on.
type Medium string

// Media. The zero value is Disk.
const (
	Disk   Medium = ""       // a directory on the disk to be measured
	Memory Medium = "memory" // a directory on a memory file system
)

// Path is where the sandbox has the volume.
func (v Volume) Path() string { return "/" + v.Name }

// Data is the name of the volume that most workloads use, at /data.
const Data = "data"

// AtData is one volume, at /data.
func AtData(m Medium) []Volume { return []Volume{{Name: Data, Medium: m}} }
