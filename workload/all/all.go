// Package all is the explicit list of workloads. To add one, add a folder beside this one, a
// line here, and a page in docs/workloads.
//
// The data path: cmd/tare passes the list to study, which checks names and parameters, and to
// run, which starts the workloads.
package all

import (
	"tare/workload"
	"tare/workload/checkpoint"
	"tare/workload/command"
	"tare/workload/density"
	"tare/workload/fault"
	"tare/workload/ffmpeg"
	"tare/workload/files"
	"tare/workload/fio"
	"tare/workload/hackbench"
	httpload "tare/workload/http"
	"tare/workload/ingress"
	"tare/workload/iperf"
	netload "tare/workload/net"
	"tare/workload/noop"
	"tare/workload/objects"
	"tare/workload/redis"
	"tare/workload/registry"
	"tare/workload/startup"
	"tare/workload/sysbench"
	syscalls "tare/workload/syscall"
	"tare/workload/tensorflow"
)

// Workloads returns every workload, in the order that `tare list` shows them.
func Workloads() []workload.Workload {
	return []workload.Workload{
		netload.Workload{},
		syscalls.Workload{},
		sysbench.NewCPU(),
		sysbench.NewMemory(),
		fio.New(),
		files.New(),
		hackbench.New(),
		redis.New(),
		iperf.New(),
		ffmpeg.New(),
		tensorflow.New(),
		httpload.Node(),
		httpload.Ruby(),
		httpload.Httpd(),
		httpload.Nginx(),
		ingress.New(),
		registry.New(),
		objects.New(),
		objects.NewClaims(),
		command.New(),
		command.NewService(),
		startup.New(),
		checkpoint.New(),
		density.New(),
		noop.New(),
		fault.New(),
	}
}
