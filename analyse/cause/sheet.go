package cause

import (
	"math"
	"slices"

	"tare/analyse/stat"
)

// figure is a place in a sheet.
type figure uint8

// The figures of one endpoint in one trial, over the measured window. CPU is in cores.
const (
	fCgroup        figure = iota // CPU charged to the endpoint's cgroups
	fQuota                       // cores that they may use
	fThrottled                   // part of the quota's periods in which it was used up
	fThrottledTime               // s/s, summed over processors
	fHelperCPU                   // of all helper threads
	fHelperBusy                  // of the helper thread that used most
	fHelperWait                  // s/s that this one waited for a processor
	fVCPU                        // CPU of vCPU threads
	fVCPUBusy                    // of the busiest
	fVCPUWait                    // s/s that it waited
	fWork                        // CPU of the workload's threads that the host sees
	fWorkBusy                    // of the busiest
	fWorkWait                    // s/s that it waited
	fWait                        // s/s that all threads of the end waited, without the harness
	fGuestCPUs                   // processors of the guest
	fGuest                       // what they did: user, system, irq, softirq, in the guest's own time
	fGuestTask                   // user and system of it
	fGuestSteal                  // cores
	fGuestBusiest                // part of the time that the one which was idle least was not idle
	fGuestTop                    // user and system of the processor that had most: part of its time
	fGuestSoft                   // softirq and irq of the processor that had most: part of its time
	fGuestSoftPart               // of all soft interrupts, the part that it took
	fGuestRunnable               // threads that run or are ready
	fGuestReady                  // the most of them that were seen at once
	fHostCores                   // processors of the host
	fHostBusy                    // part of them that was not idle
	fHostOthers                  // cores of it that no end of the trial used, nor the harness
	fHostSteal                   // part of the time that its processors were wanted in which a hypervisor ran something else
	fHostSoft                    // soft and hard interrupts of its processor that had most: part of its time
	fLinkIn                      // B/s
	fLinkOut                     // B/s
	fLinkRate                    // B/s each way
	fLinkBacklog                 // B
	fLinkDrops                   // 1/s
	fDeviceBusy                  // part of the time, of the device that was busy most
	fDeviceQueue                 // requests in it
	fDeviceBytes                 // B/s, whoever's they are
	fDisk                        // B/s that the end itself read from disks and wrote to them
	fDeviceTime                  // s of a request in it
	fDeviceFlushes               // flushes of its cache a second
	fIOLimit                     // part of the cgroup's limit of a disk that is used, of the one that is used most
	fIOPressure                  // part of the time in which a thread of the end waited for a disk
	fMissed                      // part of the bytes of a disk benchmark that no disk had
	fVolume                      // B of them, in the trial
	fWindow                      // s of the measured window
	fLoaded                      // s of it in which the benchmark ran, as it tells
	fQueued                      // connections that wait to be accepted
	fSync                        // part of the operations' time that is spent in fsync
	fGofer                       // CPU of the gofer
	fCalls                       // system calls a second
	fOther                       // the busiest workload thread of the endpoints that are not sandboxed
	fRate                        // operations a second
	fTime                        // s an operation
	fMedian                      // s of the operation in the middle
	fValue                       // of the response
	fRuntime                     // s of a launch that are the runtime's calls
	fProgram                     // s of it that are the program's own
	figures
)

// sheet is what was read; NaN where it was not.
type sheet [figures]float64

func blank() sheet {
	var s sheet
	for i := range s {
		s[i] = math.NaN()
	}
	return s
}

func (s *sheet) has(f ...figure) bool {
	return !slices.ContainsFunc(f, func(f figure) bool { return math.IsNaN(s[f]) })
}

// or is the figure, or another value where it was not read.
func (s *sheet) or(f figure, other float64) float64 {
	if math.IsNaN(s[f]) {
		return other
	}
	return s[f]
}

func (s *sheet) add(f figure, v float64) { s[f] = s.or(f, 0) + v }

// middle is the median of each figure over the trials that have it.
func middle(of []sheet) sheet {
	out := blank()
	var v []float64
	for f := range out {
		v = v[:0]
		for i := range of {
			if !math.IsNaN(of[i][f]) {
				v = append(v, of[i][f])
			}
		}
		if len(v) > 0 {
			out[f] = stat.Median(v)
		}
	}
	return out
}
