package observer

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"tare/host/storage"
)

// configMost bounds what is read of a container's configuration, in bytes.
const configMost = 1 << 20

// stored describes what the volumes of a pod are stored on, by their paths in the containers. A text is "", or missing, if that
// is not known. The working directory of the pod's shim is beside the bundles of all its containers
// (containerd's core/runtime/v2/README.md), and their config.json has where on the node each volume is, whatever the runtime does with it
// (https://github.com/opencontainers/runtime-spec/blob/main/config.md).
func stored(shims []shim, containers, paths []string) map[string]string {
	out := map[string]string{}
	for _, s := range shims {
		on := storage.Of(s.Pid)
		for _, id := range containers {
			c, err := configOf(fmt.Sprintf("/proc/%d/cwd/../%s/config.json", s.Pid, id))
			if err != nil {
				continue
			}
			for _, m := range c.Mounts {
				if slices.Contains(paths, m.Destination) {
					out[m.Destination] = on.Describe(m.Source)
				}
			}
			if c.Linux == nil {
				continue
			}
			for _, d := range c.Linux.Devices {
				if slices.Contains(paths, d.Path) {
					out[d.Path] = on.Device(uint32(d.Major), uint32(d.Minor)) //nolint:gosec // numbers of devices
				}
			}
		}
	}
	return out
}

// configOf reads a container's configuration.
func configOf(file string) (c specs.Spec, err error) {
	f, err := os.Open(file) //nolint:gosec // in /proc
	if err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }()
	return c, json.NewDecoder(io.LimitReader(f, configMost)).Decode(&c)
}
