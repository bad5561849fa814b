// Package freemem reads how much of the host's memory can be had: every page
// that is free or can be dropped without a loss, whichever list it is on.
//
// The data path: 1. Read opens /proc/meminfo and /proc/zoneinfo; 2. parse adds
// up, in bytes:
//
//	MemFree                     pages on the buddy allocator's lists
//	pagesets, count:            pages on the per-CPU lists of every zone
//	Buffers + Cached - Shmem    the page cache without what is memory of programs
//	KReclaimable                slab and other caches that the kernel shrinks
//
// MemAvailable was rejected, for it is an estimate of what a program can take
// without swapping (Documentation/filesystems/proc.rst, si_mem_available in
// mm/show_mem.c) and not a sum of pages:
//
//   - Freed pages first go to lists of the CPU that freed them (struct
//     per_cpu_pages, free_unref_page in mm/page_alloc.c). They are in none of its
//     terms. Since Linux 6.7 the lists grow with the load, to an eighth of a zone for
//     all CPUs together, and shrink over seconds: 400 MB were seen here on two CPUs of
//     24 GB. The next program is served from there, and MemAvailable does not fall.
//   - Of the page cache, and of the slab, it leaves out a half, or the low
//     watermark where that is less. On a host with little in its cache a page that is
//     read from a disk so takes half a page.
//
// Not in it: pages that free page reporting holds for a moment while it tells a
// hypervisor of them (mm/page_reporting.c, up to 32 blocks), and the differences of
// each CPU that are not in the kernel's sums yet (zoneinfo's "vm stats threshold",
// some tens of pages of each CPU and zone).
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
	// maxMeminfo and maxZoneinfo bound what is read: of the latter a CPU takes about 150
	// bytes in each zone.
	maxMeminfo  = 64 << 10
	maxZoneinfo = 64 << 20
	// maxBytes bounds what is believed of each number.
	maxBytes = uint64(1) << 56
)

// Read returns the bytes of this host's memory that can be had now.
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
			err = errors.Join(err, fmt.Errorf("meminfo has no %s that can be", key))
			return 0
		}
		return int64(kib) << 10
	}
	slab := "KReclaimable" // since Linux 4.20; before, only the slab is told
	if _, ok := held.Value(b, slab); !ok {
		slab = "SReclaimable"
	}
	n := value("MemFree") + value("Buffers") + value("Cached") - value("Shmem") + value(slab)
	return n, err
}

// pagesets adds up the pages on the per-CPU lists in /proc/zoneinfo
// (zoneinfo_show_print in mm/vmstat.c). They are told so:
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
			return 0, fmt.Errorf("zoneinfo: %q is no count of pages", lines.Bytes())
		}
		sum, seen = sum+n, true
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("zoneinfo: %w", err)
	}
	if !seen {
		return 0, errors.New("zoneinfo tells of no pagesets")
	}
	return int64(sum), nil
}
