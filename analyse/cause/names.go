package cause

import "tare/record"

// Names of the samples that are read: what package run makes of each series over
// the measured window (internal/window).
const (
	cpuTime        = record.CPUTime + record.RateSuffix
	runWait        = "run_wait" + record.RateSuffix
	cgroupCPU      = record.CgroupCPU + record.RateSuffix
	quotaMean      = record.CPUQuota + "_mean"
	periods        = record.CgroupPeriods + record.RateSuffix
	throttled      = record.CgroupThrottledPeriods + record.RateSuffix
	throttleTime   = record.CgroupThrottledTime + record.RateSuffix
	guestCPU       = record.GuestCPU + record.RateSuffix
	guestSoftIRQ   = record.GuestSoftIRQs + record.RateSuffix
	guestRunning   = record.GuestRunnable + "_mean"
	guestReady     = record.GuestRunnable + "_max"
	systemCPU      = "system_cpu" + record.RateSuffix
	hostSoft       = "system_cpu_softirq" + record.RateSuffix
	systemCalls    = record.SystemCalls + record.RateSuffix
	linkReceived   = record.LinkReceived + record.RateSuffix
	linkSent       = record.LinkSent + record.RateSuffix
	linkRate       = record.LinkRate + "_mean"
	linkBacklog    = record.LinkBacklog + "_mean"
	linkDrops      = record.LinkDrops + record.RateSuffix
	deviceBusy     = record.DeviceBusy + record.RateSuffix
	deviceQueue    = record.DeviceQueue + record.RateSuffix
	deviceRead     = record.DeviceRead + record.RateSuffix
	deviceWrote    = record.DeviceWrote + record.RateSuffix
	deviceRequests = record.DeviceRequests + record.RateSuffix
	deviceFlushes  = record.DeviceFlushes + record.RateSuffix
	cgroupRead     = record.CgroupIORead + record.RateSuffix
	cgroupWrote    = record.CgroupIOWritten + record.RateSuffix
	cgroupReads    = record.CgroupIOReads + record.RateSuffix
	cgroupWrites   = record.CgroupIOWrites + record.RateSuffix
	limitRead      = record.CgroupIOLimitRead + "_mean"
	limitWrite     = record.CgroupIOLimitWrite + "_mean"
	limitReads     = record.CgroupIOLimitReads + "_mean"
	limitWrites    = record.CgroupIOLimitWrites + "_mean"
	queuedMean     = record.QueuedConnections + "_mean"
	ioPressure     = record.CgroupIOPressure + record.RateSuffix
	collectorCPU   = record.CollectorCPU + record.RateSuffix
)

// shared are also read by others (package cpucost, structural): Take leaves them.
func shared(name string) bool {
	switch name {
	case cpuTime, cgroupCPU, quotaMean, periods, throttled, throttleTime, systemCalls:
		return true
	}
	return false
}

// SampleNames are the names of the labelled samples that a Reader looks at.
func SampleNames() []string {
	return []string{cpuTime, runWait, cgroupCPU, quotaMean, periods, throttled, throttleTime, record.ThreadBusiest, record.ThreadBusiestWait,
		guestCPU, guestSoftIRQ, guestRunning, guestReady, systemCPU, hostSoft, systemCalls, linkReceived, linkSent, linkRate, linkBacklog, linkDrops,
		deviceBusy, deviceQueue, deviceRead, deviceWrote, deviceRequests, deviceFlushes,
		cgroupRead, cgroupWrote, cgroupReads, cgroupWrites, limitRead, limitWrite, limitReads, limitWrites, ioPressure, queuedMean}
}

// Roles of threads, as labels have them.
const (
	roleWorkload     = string(record.RoleWorkload)
	roleVCPU         = string(record.RoleVCPU)
	roleHarness      = string(record.RoleHarness)
	roleShim         = string(record.RoleShim)
	roleGofer        = string(record.RoleGofer)
	roleUnattributed = string(record.RoleUnattributed)
)

// isHelper says whether threads of a role work for the sandbox beside the workload:
// vhost, I/O threads, the VMM's main loop, sentry, gofer, virtiofsd, and whatever a
// later sandbox has.
func isHelper(role string) bool {
	switch role {
	case "", roleWorkload, roleVCPU, roleHarness, roleShim, roleUnattributed:
		return false
	}
	return true
}
