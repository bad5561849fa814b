package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// slot is a place for a processor: an element of query-hotpluggable-cpus.
type slot struct {
	Type  string         `json:"type"`
	Props map[string]int `json:"props"`
	Path  string         `json:"qom-path"` // "" while it is free
}

// plug plugs in the processors and the memory that the limits ask for. The guest's
// agent then brings them online.
func (m *machine) plug(ctx context.Context, o options, shared bool) error {
	if m.clh != nil {
		return m.plugCLH(ctx, o)
	}
	if o.size.VCPUsHotplugged > 0 {
		var slots []slot
		if err := m.qmp.Run(ctx, "query-hotpluggable-cpus", nil, &slots); err != nil {
			return err
		}
		free, err := pick(slots, o.size.VCPUsHotplugged)
		if err != nil {
			return err
		}
		for n, s := range free {
			device := map[string]any{"driver": s.Type, "id": fmt.Sprintf("cpu-%d", n)}
			for name, value := range s.Props {
				device[name] = value
			}
			if err := m.qmp.Run(ctx, "device_add", device, nil); err != nil {
				return fmt.Errorf("plugging in vCPU %d of %d: %w", n+1, len(free), err)
			}
		}
	}
	if o.plug == 0 {
		return nil
	}
	backend := map[string]any{"qom-type": "memory-backend-ram", "id": "mem1", "size": o.plug}
	if shared {
		backend["qom-type"], backend["share"] = "memory-backend-memfd", true
	}
	err := m.qmp.Run(ctx, "object-add", backend, nil)
	if err == nil {
		err = m.qmp.Run(ctx, "device_add", map[string]any{"driver": "pc-dimm", "id": "dimm1", "memdev": "mem1"}, nil)
	}
	if err != nil {
		return fmt.Errorf("plugging in %d MiB of memory: %w", o.plug>>20, err)
	}
	return nil
}

// pick chooses n free places, the lowest sockets first.
func pick(slots []slot, n int) ([]slot, error) {
	free := slices.DeleteFunc(slices.Clone(slots), func(s slot) bool { return s.Path != "" })
	if len(free) < n {
		return nil, fmt.Errorf("QEMU has %d free slots for vCPUs, %d are needed", len(free), n)
	}
	slices.SortFunc(free, func(a, b slot) int {
		for _, name := range []string{"socket-id", "die-id", "core-id", "thread-id"} {
			if d := a.Props[name] - b.Props[name]; d != 0 {
				return d
			}
		}
		return 0
	})
	free = free[:n]
	for _, s := range free {
		if s.Type == "" || len(s.Props) == 0 || slices.Contains(slices.Collect(maps.Keys(s.Props)), "driver") {
			return nil, errors.New("QEMU's list of slots for vCPUs cannot be parsed")
		}
	}
	return free, nil
}
