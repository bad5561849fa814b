// Package all is the explicit list of collectors. To add one, add a folder beside this one
// and a line here.
package all

import (
	"tare/collect"
	"tare/collect/calls"
	"tare/collect/cgroup"
	"tare/collect/disk"
	"tare/collect/guest"
	"tare/collect/link"
	"tare/collect/proc"
	"tare/collect/system"
)

// Collectors makes all collectors, in the order of `tare list`.
func Collectors() []collect.Collector {
	return []collect.Collector{
		proc.New(),
		cgroup.New(),
		system.New(),
		guest.New(),
		link.New(),
		disk.New(),
	}
}

// Counting makes the collector of counting trials. It slows the calls that it counts, so no
// study can name it.
func Counting() collect.Collector { return calls.New() }
