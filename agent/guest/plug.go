package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// plugWithin bounds the wait until what was plugged in is online.
const plugWithin = 10 * time.Second

// plug is OpPlug.
func (m *machine) plug(body json.RawMessage) (any, error) {
	var want Plug
	if err := json.Unmarshal(body, &want); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(plugWithin); ; time.Sleep(2 * time.Millisecond) {
		err := bringOnline(m.sys)
		cpus, err2 := onlineCPUs(m.sys.FS())
		memory, err3 := onlineMemory(m.sys.FS())
		switch {
		case err2 != nil || err3 != nil:
			return nil, errors.Join(err2, err3)
		case cpus >= want.CPUs && memory >= want.Memory:
			return m.up()
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("of %d processors and %d MiB, %d and %d MiB are online after %s",
				want.CPUs, want.Memory>>20, cpus, memory>>20, plugWithin), err)
		}
	}
}

// bringOnline switches on every processor and every block of memory that is off:
// https://docs.kernel.org/core-api/cpu_hotplug.html and
// https://docs.kernel.org/admin-guide/mm/memory-hotplug.html
func bringOnline(sys *os.Root) error {
	var failed error
	for _, f := range []struct{ pattern, off, on string }{
		{"devices/system/cpu/cpu[0-9]*/online", "0", "1"},
		{"devices/system/memory/memory[0-9]*/state", "offline", "online"},
	} {
		files, err := fs.Glob(sys.FS(), f.pattern)
		if err != nil {
			return err
		}
		for _, name := range files {
			if b, err := sys.ReadFile(name); err != nil || strings.TrimSpace(string(b)) != f.off {
				continue
			}
			if err := sys.WriteFile(name, []byte(f.on), 0); err != nil {
				failed = errors.Join(failed, err)
			}
		}
	}
	return failed
}

// onlineCPUs counts the processors of devices/system/cpu/online, such as 0-1,3.
func onlineCPUs(sys fs.FS) (int, error) {
	b, err := fs.ReadFile(sys, "devices/system/cpu/online")
	if err != nil {
		return 0, err
	}
	return countList(strings.TrimSpace(string(b)))
}

// countList counts the numbers of a list as the kernel writes it:
// https://man7.org/linux/man-pages/man7/cpuset.7.html, "List format".
func countList(s string) (int, error) {
	total := 0
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		a, err1 := strconv.ParseUint(from, 10, 16)
		b, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil || b < a {
			return 0, fmt.Errorf("cannot read %q as a list of processors, such as 0-3", s)
		}
		total += int(b-a) + 1
	}
	return total, nil
}

// onlineMemory sums the memory blocks that are online, in bytes. A machine whose memory is
// not a multiple of a block has a little less. A kernel without hot-plug has no blocks; then
// the sum is MemTotal of /proc/meminfo.
func onlineMemory(sys fs.FS) (int64, error) {
	b, err := fs.ReadFile(sys, "devices/system/memory/block_size_bytes")
	if errors.Is(err, fs.ErrNotExist) {
		if b, err = os.ReadFile("/proc/meminfo"); err != nil {
			return 0, err
		}
		return memTotal(string(b))
	}
	if err != nil {
		return 0, err
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(b)), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("block_size_bytes: %w", err)
	}
	states, err := fs.Glob(sys, "devices/system/memory/memory[0-9]*/state")
	if err != nil {
		return 0, err
	}
	var total int64
	for _, f := range states {
		if b, err := fs.ReadFile(sys, f); err == nil && strings.TrimSpace(string(b)) == "online" {
			total += size
		}
	}
	return total, nil
}

// memTotal returns MemTotal of proc_meminfo(5), in bytes:
//
//	MemTotal:         497032 kB
func memTotal(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		rest, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 53)
		if err != nil {
			return 0, fmt.Errorf("meminfo: %q: %w", line, err)
		}
		return int64(kib) << 10, nil
	}
	return 0, errors.New("meminfo has no MemTotal")
}
