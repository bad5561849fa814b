// Package freemem reads how much of the host's memory is available: every page that is
// free or can be dropped without loss, on any of the kernel's lists.
//
// The data path: 1. Read opens /proc/meminfo and /proc/zoneinfo; 2. parse adds
// up, in bytes:
//
//	MemFree                     pages on the buddy allocator's lists
//	pagesets, count:            pages on the per-CPU lists of every zone
//	Buffers + Cached - Shmem    the page cache without the memory of programs
//	KReclaimable                slab and other caches that the kernel shrinks
//
// MemAvailable was rejected, because it estimates what a program can take without swapping
// (Documentation/filesystems/proc.rst, si_mem_available in mm/show_mem.c) and is not a sum
// of pages:
//
//   - Freed pages first go to lists of the CPU that freed them (struct per_cpu_pages,
//     free_unref_page in mm/page_alloc.c). MemAvailable does not count them. Since Linux
//     6.7 the lists grow with the load, to an eighth of a zone for all CPUs together, and
//     shrink over seconds: a machine with two CPUs and 24 GB had 400 MB there. The next
//     program gets its pages from these lists, and MemAvailable does not fall.
//   - It leaves out half of the page cache and of the slab, or the low watermark if that
//     is less. On a host with a small cache, a page that is read from a disk therefore
//     lowers it by half a page.
//
// The sum lacks the pages that free page reporting holds for a moment while it reports
// them to a hypervisor (mm/page_reporting.c, up to 32 blocks), and each CPU's differences
// that the kernel has not added to its sums yet (zoneinfo's "vm stats threshold", some
// tens of pages for each CPU and zone).
package freemem

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"tare/internal/held"
)

const (
	// maxMeminfo and maxZoneinfo bound what is read. In zoneinfo a CPU takes about 150 bytes
	// in each zone.
	maxMeminfo  = 64 << 10
	maxZoneinfo = 64 << 20
	// maxBytes is the largest number that is accepted.
	maxBytes = uint64(1) << 56
)

// Read returns how many bytes of this host's memory are available now.
func Read() (int64, error) { return read(os.DirFS("/proc")) }

func read(proc fs.FS) (int64, error) {
	m, err := proc.Open("meminfo")
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	z, err := proc.Open("zoneinfo")
	if err != nil {
		return 0, err
	}
	defer func() { _ = z.Close() }()
	return parse(m, z, os.Getpagesize())
}

func parse(meminfo, zoneinfo io.Reader, page int) (int64, error) {
	n, err := sums(meminfo)
	if err != nil {
		return 0, err
	}
	pages, err := pagesets(zoneinfo)
	if err != nil {
		return 0, err
	}
	return n + pages*int64(page), nil
}

// sums reads /proc/meminfo, whose "kB" are 1024 bytes (proc_meminfo(5)).
func sums(meminfo io.Reader) (int64, error) {
	b, err := io.ReadAll(io.LimitReader(meminfo, maxMeminfo))
	if err != nil {
		return 0, fmt.Errorf("meminfo: %w", err)
	}
	value := func(key string) int64 {
		kib, ok := held.Value(b, key)
		if !ok || kib > maxBytes>>10 {
			err = errors.Join(err, fmt.Errorf("meminfo has no valid %s", key))
			return 0
		}
		return int64(kib) << 10
	}
	slab := "KReclaimable" // since Linux 4.20; before, there is only the slab
	if _, ok := held.Value(b, slab); !ok {
		slab = "SReclaimable"
	}
	n := value("MemFree") + value("Buffers") + value("Cached") - value("Shmem") + value(slab)
	return n, err
}

// pagesets adds up the pages on the per-CPU lists in /proc/zoneinfo
// (zoneinfo_show_print in mm/vmstat.c):
//
//	pagesets
//	  cpu: 0
//	            count:    6715
//	            high:     9014
func pagesets(zoneinfo io.Reader) (int64, error) {
	var sum uint64
	seen := false
	lines := bufio.NewScanner(io.LimitReader(zoneinfo, maxZoneinfo))
	for lines.Scan() {
		rest, ok := held.After(bytes.TrimLeft(lines.Bytes(), " \t"), "count")
		if !ok {
			continue
		}
		n, _, ok := held.Uint(rest)
		if !ok || n > maxBytes>>16 || sum > maxBytes>>16 {
			return 0, fmt.Errorf("zoneinfo: cannot read a count of pages from %q", lines.Bytes())
		}
		sum, seen = sum+n, true
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("zoneinfo: %w", err)
	}
	if !seen {
		return 0, errors.New("zoneinfo lists no pagesets")
	}
	return int64(sum), nil
}
