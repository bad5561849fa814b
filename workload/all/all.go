// Package all is the explicit list of the workloads. A new one is a folder
// beside this one, a line here, and a page in docs/workloads.
//
// The data path: cmd/tare takes the list and hands it to study (names and
// parameters to check against) and to run (what to start).
package all

import (
	"tare/workload"
	"tare/workload/density"
	"tare/workload/fault"
	"tare/workload/fio"
	netload "tare/workload/net"
	"tare/workload/noop"
	"tare/workload/startup"
	"tare/workload/sysbench"
	syscalls "tare/workload/syscall"
)

// Workloads returns every workload, in the order that `tare list` shows them.
func Workloads() []workload.Workload {
	return []workload.Workload{
		netload.Workload{},
		syscalls.Workload{},
		sysbench.NewCPU(),
		sysbench.NewMemory(),
		fio.New(),
		startup.New(),
		density.New(),
		noop.New(),
		fault.New(),
	}
}
