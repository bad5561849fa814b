package fio

import (
	"cmp"
	"strconv"
	"strings"

	"tare/param"
	"tare/volume"
)

// directory is where the files are in the sandbox.
func directory(v param.Values) string {
	return cmp.Or(map[string]string{"tmpfs": "/tmp", "root": "/"}[v.Str("target")], "/data")
}

// files returns the arguments that describe the files and their layout.
func files(v param.Values) []string {
	size := strconv.FormatInt(v.Size("size"), 10)
	if isDevice(v) { // each job has a part of its own
		return []string{"--name=tare", "--filename=" + devices(v), "--rw=" + v.Str("rw"),
			"--size=" + size, "--numjobs=" + v.Str("jobs"), "--offset_increment=" + size}
	}
	return []string{
		"--name=tare", "--directory=" + directory(v), "--rw=" + v.Str("rw"),
		"--size=" + size, "--numjobs=" + v.Str("jobs"),
		// Preallocated blocks that were never written read as zeroes without
		// touching the disk: the files are written for real.
		"--fallocate=none",
	}
}

// layoutCommand writes all that the load reads.
func layoutCommand(v param.Values) []string {
	switch {
	case isDevice(v):
		return append([]string{"fio"}, fillDevice(v, "write")...)
	case v.Str("cache") == "warm":
		return append([]string{"sh", "-c", warmLayout, "sh", directory(v)}, layout(v)...)
	}
	return append([]string{"fio"}, layout(v)...)
}

// layout returns the arguments that make fio only lay the files out. fio lays out what is read.
func layout(v param.Values) []string {
	return append([]string{"--create_only=1", "--output=/dev/null"}, append(files(v), "--rw=read")...)
}

// fillDevice are the arguments that write all that the load reads: blocks that were never
// written read as zeroes without touching the disk.
func fillDevice(v param.Values, rw string) []string {
	return []string{"--name=fill", "--filename=" + devices(v), "--rw=" + rw, "--bs=1M", "--direct=1", "--end_fsync=1",
		"--size=" + strconv.FormatInt(deviceSize(v)*int64(len(volumes(v))), 10), "--output=/dev/null"}
}

// deviceSize is what all jobs use of a device, in bytes: at least a whole request of fillDevice.
func deviceSize(v param.Values) int64 { return max(v.Size("size")*int64(v.Int("jobs")), 1<<20) }

// Values of target that are volumes of one file or device.
const (
	onImage  = "image"
	onBlock  = "block"
	onDevice = "device"
)

// isDevice says that there are no files.
func isDevice(v param.Values) bool { return v.Str("target") == onBlock || v.Str("target") == onDevice }

// devices are their paths in the sandbox, as fio has them in filename. A job's size is of all of
// them together.
func devices(v param.Values) string {
	var out []string
	for _, x := range volumes(v) {
		out = append(out, x.Path())
	}
	return strings.Join(out, ":")
}

// imageRoom is what a file system needs beside the files, in bytes: its journal, above all.
const imageRoom = 64 << 20

// volumes are those that hold the files.
func volumes(v param.Values) []volume.Volume {
	switch v.Str("target") {
	case "data":
		return volume.AtData(volume.Disk)
	case "bind":
		return volume.AtData(volume.Memory)
	case onImage:
		return []volume.Volume{{Name: volume.Data, Medium: volume.Image, Size: v.Size("size")*int64(v.Int("jobs"))*5/4 + imageRoom}}
	case onBlock:
		return []volume.Volume{{Name: volume.Data, Mode: volume.Block, Size: deviceSize(v)}}
	case onDevice:
		var out []volume.Volume
		for i, path := range strings.Split(v.Str("device"), ":") {
			name := volume.Data
			if i > 0 {
				name += strconv.Itoa(i + 1)
			}
			out = append(out, volume.Volume{Name: name, Mode: volume.Block, Medium: volume.Device, Device: path, Size: deviceSize(v)})
		}
		return out
	default:
		return nil
	}
}

// inMemory reports whether the files are never on a disk.
func inMemory(v param.Values) bool { return v.Str("target") == "tmpfs" || v.Str("target") == "bind" }

// cold reports whether the host's page cache is dropped between layout and load, so that the
// load starts cold also in a sandbox that ignores posix_fadvise(2).
func cold(v param.Values) bool { return v.Str("cache") == "dropped" && !inMemory(v) }

func writesOnly(rw string) bool {
	ds := directions(rw)
	return len(ds) == 1 && ds[0] == "write"
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
