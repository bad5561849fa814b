package fio

import (
	"path/filepath"
	"strconv"
	"strings"

	"tare/param"
	"tare/volume"
	"tare/workload/target"
)

// directory is where the files are in the sandbox.
func directory(v param.Values) string {
	return target.Directory(v.Str("target"))
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

// layoutCommand writes everything that the load reads.
func layoutCommand(v param.Values) []string {
	switch {
	case isDevice(v):
		return append([]string{"fio"}, fillDevice(volumes(v), "write")...)
	case v.Str("cache") == "warm":
		return append([]string{"sh", "-c", warmLayout, "sh", directory(v)}, layout(v)...)
	}
	return append([]string{"fio"}, layout(v)...)
}

// layout returns the arguments that make fio only lay out the files. fio lays out the files that it
// reads.
func layout(v param.Values) []string {
	return append([]string{"--create_only=1", "--output=/dev/null"}, append(files(v), "--rw=read")...)
}

// fillDevice returns the arguments that write everything that the load reads. Reads of blocks that were
// never written give zeroes without touching the disk.
func fillDevice(on []volume.Volume, rw string) []string {
	out := []string{"--output=/dev/null"}
	for i := range on {
		out = append(out, "--name=fill", "--filename="+on[i].Path(), "--rw="+rw, "--bs=1M", "--direct=1", "--end_fsync=1",
			"--size="+strconv.FormatInt(on[i].Size, 10))
	}
	return out
}

// deviceSize is how much of a device all jobs use, in bytes.
func deviceSize(v param.Values) int64 { return max(v.Size("size")*int64(v.Int("jobs")), leastDevice) }

// leastDevice is a whole request of fillDevice.
const leastDevice = 1 << 20

// isDevice reports whether the load uses a device, without files.
func isDevice(v param.Values) bool {
	return v.Str("target") == target.Block || v.Str("target") == target.Device
}

// devices are their paths in the sandbox, as fio has them in filename. A job's size counts all of them
// together.
func devices(v param.Values) string {
	var out []string
	for _, x := range volumes(v) {
		out = append(out, x.Path())
	}
	return strings.Join(out, ":")
}

// volumes are those that hold the files.
func volumes(v param.Values) []volume.Volume {
	size := v.Size("size") * int64(v.Int("jobs"))
	switch v.Str("target") {
	case target.Device:
		var out []volume.Volume
		lose := strings.Split(v.Str("overwrite"), ":")
		for i, given := range strings.Split(v.Str("device"), ":") {
			x := target.Volumes(target.Device, deviceSize(v), filepath.Clean(given))[0]
			if i < len(lose) {
				x.Overwrite = strings.TrimSpace(lose[i])
			}
			if i > 0 {
				x.Name += strconv.Itoa(i + 1)
			}
			out = append(out, x)
		}
		return out
	case target.Block:
		size = deviceSize(v)
	}
	return target.Volumes(v.Str("target"), size, "")
}

// inMemory reports whether the files are never on a disk.
func inMemory(v param.Values) bool { return target.InMemory(v.Str("target")) }

// cold reports whether the host's page cache is dropped between layout and load, so that the
// load starts cold also in a sandbox that ignores posix_fadvise(2).
func cold(v param.Values) bool { return target.Cold(v.Str("target"), v.Str("cache")) }

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
