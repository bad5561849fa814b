// Package all is the explicit list of collectors. A new one is a folder beside
// this and a line here.
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

// Collectors makes every collector there is, in the order of `tare list`.
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

// Counting makes the collector that is for counting trials alone: it makes what it
// counts slower, and no study names it.
func Counting() collect.Collector { return calls.New() }
