package vm

import (
	"fmt"
	"runtime"
	"strconv"

	"tare/agent/guest"
	"tare/param"
	"tare/sandbox"
	"tare/sizing"
)

// Names of the parameters. The first two, the bound and the overheads are Kata's, by its names.
const (
	paramVCPUs    = "default_vcpus"
	paramMemory   = "default_memory"
	paramMaxVCPUs = "max_vcpus"
	paramAccel    = "accel"
	paramRootfs   = "rootfs"
	paramRootDisk = "root_disk"
	paramStart    = "start"
	paramQueues   = "network_queues"
	paramThreads  = "io_threads"
	paramPinned   = "io_threads_pinned"
	paramDisk     = "disk"
	paramCache    = "disk_cache"
	paramAIO      = "disk_aio"
	paramDiskQ    = "disk_queues"
	paramBus      = "disk_bus"
	paramDiskFS   = "disk_fs"
	paramSizing   = "sizing"
	paramOverCPU  = "overhead_vcpus"
	paramOverMem  = "overhead_memory"
)

// Words of the parameters.
const (
	all  = "all"
	auto = "auto"
	none = "none" // of a number: 0

	accelKVM = "kvm"
	accelTCG = "tcg"

	rootVirtiofs = "virtiofs"
	rootBlock    = "block"

	rootOverlay = "overlay"
	rootCopy    = "copy"

	startBoot     = "boot"
	startSnapshot = "snapshot"

	diskRaw  = "raw"
	diskLUKS = "luks"

	cacheHost = "host"
	cacheNone = "none"

	busBlk  = "virtio-blk"
	busSCSI = "virtio-scsi"

	aioThreads = "threads"
	aioNative  = "native"
	aioURing   = "io_uring"
)

// mostVCPUs is what one QEMU q35 machine can have without an x2APIC of its own, and
// Kata's bound (govmmQemu, defaultMaxVCPUs).
const mostVCPUs = 240

// Params implements sandbox.Kind.
func (k *Hypervisor) Params() []param.Param {
	return []param.Param{
		{Name: paramVCPUs, Type: param.Int, Default: "1", Min: -1, Max: mostVCPUs, Words: []string{all},
			Help: "vCPUs at boot; all, or -1, stands for as many as the host has processors. A CPU limit adds its cores, rounded up"},
		{Name: paramMemory, Type: param.Int, Default: "2048", Min: leastMemoryMiB, Max: sizing.MostMemoryMiB,
			Help: "MiB of memory at boot; a memory limit adds to it"},
		{Name: paramMaxVCPUs, Type: param.Int, Default: "0", Min: 0, Max: mostVCPUs,
			Help: "maximum number of vCPUs, including hot-plugged ones; 0 is the number of the host's processors"},
		{Name: paramAccel, Type: param.Enum, Default: auto, Words: []string{auto, accelKVM, accelTCG},
			Help: "what runs the guest's instructions: kvm, the host's processors; tcg, software that emulates them, several times as slow; auto is kvm if a trial boot shows that it works"},
		{Name: paramRootfs, Type: param.Enum, Default: rootVirtiofs, Words: []string{rootVirtiofs, rootBlock},
			Help: "how the guest gets its files: virtiofs, from a daemon on the host, as with Kata; block, from an ext4 image on a virtio disk"},
		{Name: paramRootDisk, Type: param.Enum, Default: auto, Words: []string{auto, rootOverlay, rootCopy},
			Help: "the root disk of each machine, with rootfs block: overlay, a qcow2 file over the image (copy-on-write); copy, a copy of the whole image; auto, the image itself, read-only, and an overlay if the workload writes to its root"},
		{Name: paramStart, Type: param.Enum, Default: startBoot, Words: []string{startBoot, startSnapshot},
			Help: "boot each machine, or resume it from a snapshot of a booted machine; a snapshot needs rootfs block"},
		{Name: paramQueues, Type: param.Int, Default: auto, Min: 1, Max: mostVCPUs, Words: []string{auto},
			Help: "pairs of queues of the network card; auto is the number of vCPUs at boot"},
		{Name: paramThreads, Type: param.Int, Default: "0", Min: 0, Max: mostThreads, Words: []string{none},
			Help: "QEMU's I/O threads for the disks of the volumes; each serves a share of each disk's queues. 0, or none, leaves the disks to the main loop. More needs rootfs block, and two or more need QEMU 9.0 and as many queues"},
		{Name: paramPinned, Type: param.Bool, Default: "false",
			Help: "bind each I/O thread to one processor, in turn"},
		{Name: paramDisk, Type: param.Enum, Default: diskRaw, Words: []string{diskRaw, diskLUKS},
			Help: "format of the disk of /data on the host: raw; luks, encrypted by QEMU (AES), which needs rootfs block"},
		{Name: paramCache, Type: param.Enum, Default: cacheHost, Words: []string{cacheHost, cacheNone},
			Help: "whether the volumes' disks use the host's page cache: host, yes; none, no (O_DIRECT)"},
		{Name: paramAIO, Type: param.Enum, Default: aioThreads, Words: []string{aioThreads, aioNative, aioURing},
			Help: "how QEMU reads and writes the volumes' disks: threads, by a thread pool; native, by io_submit, which needs disk_cache none; io_uring"},
		{Name: paramDiskQ, Type: param.Int, Default: auto, Min: 1, Max: mostVCPUs, Words: []string{auto},
			Help: "queues of each of the volumes' disks; auto is one for each vCPU at boot"},
		{Name: paramBus, Type: param.Enum, Default: busBlk, Words: []string{busBlk, busSCSI},
			Help: "bus of the volumes' disks in the guest: virtio-blk; virtio-scsi, with a controller for each disk"},
		{Name: paramDiskFS, Type: param.Enum, Default: guest.FSExt4, Words: []string{guest.FSExt4, guest.FSXFS},
			Help: "file system of a disk that tare creates for the machine; xfs needs mkfs.xfs (package xfsprogs)"},
		{Name: paramSizing, Type: param.Enum, Default: string(sizing.Go), Words: []string{string(sizing.Go), string(sizing.RS)},
			Help: "which rule sets the size: go, of Kata's Go runtime, which hot-plugs the limits; rs, of runtime-rs (the default of kata-deploy since Kata 4), which boots with limits and overhead, and uses default_vcpus and default_memory only without limits"},
		{Name: paramOverCPU, Type: param.Float, Default: strconv.FormatFloat(sizing.DefaultOverheadVCPUs, 'g', -1, 64), Min: 0, Max: mostVCPUs,
			Help: "with sizing rs: vCPUs that a limit does not count; their sum is rounded up"},
		{Name: paramOverMem, Type: param.Int, Default: strconv.Itoa(sizing.DefaultOverheadMiB), Min: 0, Max: sizing.MostMemoryMiB,
			Help: "with sizing rs: MiB of memory in addition to a memory limit"},
	}
}

// leastMemoryMiB is what a distribution's kernel and this program boot in.
const leastMemoryMiB = sizing.LeastMemoryMiB

// options are a Spec's options, read.
type options struct {
	size     sizing.Size
	bound    int // of the vCPUs, for -smp maxcpus
	plug     int64
	static   bool   // the size is runtime-rs's: nothing is plugged in
	accel    string // auto, kvm or tcg
	rootfs   string
	rootDisk string // auto, overlay or copy
	snapshot bool
	queues   int
	threads  int  // of QEMU's own for the volumes' disks
	pinned   bool // each of them to a processor
	luks     bool // those disks are encrypted
	bus, fs  string

	diskQueues int    // 0: one for each vCPU
	cache, aio string // of the volumes' disks; "" is the default
}

// mostThreads is more than any machine has disks.
const mostThreads = 16

// blockSize is what memory is plugged in by: the size of a block that the kernel of
// an x86-64 machine under 64 GiB adds (Documentation/admin-guide/mm/memory-hotplug.rst).
// Kata rounds up to it as well.
const blockSize = 128 << 20

// read reads the options of a Spec on a host of that many processors.
func (k *Hypervisor) read(spec sandbox.Spec, hostCPUs int) (options, error) {
	v, err := param.Fill(k.Params(), param.Values(spec.Options))
	if err != nil {
		return options{}, err
	}
	o := options{accel: v.Str(paramAccel), rootfs: v.Str(paramRootfs), rootDisk: v.Str(paramRootDisk), snapshot: v.Str(paramStart) == startSnapshot}
	if o.snapshot && o.rootfs != rootBlock {
		return o, fmt.Errorf("a virtual machine with virtiofs cannot be saved, so start = %s needs rootfs = %s", startSnapshot, rootBlock)
	}
	if o.rootDisk != auto && o.rootfs != rootBlock {
		return o, fmt.Errorf("%s = %s: with %s = %s, the root is not a disk; write %s: %s", paramRootDisk, o.rootDisk, paramRootfs, o.rootfs, paramRootfs, rootBlock)
	}
	o.threads, o.pinned, o.luks = v.Int(paramThreads), v.Bool(paramPinned), v.Str(paramDisk) == diskLUKS
	o.bus, o.fs = v.Str(paramBus), v.Str(paramDiskFS)
	if o.cache = v.Str(paramCache); o.cache == cacheHost {
		o.cache = ""
	}
	if o.aio = v.Str(paramAIO); o.aio == aioThreads {
		o.aio = ""
	}
	if v.Str(paramDiskQ) != auto {
		o.diskQueues = v.Int(paramDiskQ)
	}
	if o.aio == aioNative && o.cache != cacheNone {
		return o, fmt.Errorf("%s = %s needs %s = %s: QEMU refuses it with the host's page cache", paramAIO, aioNative, paramCache, cacheNone)
	}
	if err := o.checkDisk(); err != nil {
		return o, err
	}
	o.bound = min(hostCPUs, mostVCPUs)
	if most := v.Int(paramMaxVCPUs); most > 0 {
		o.bound = most
	}
	r := sizing.Runtime{VCPUs: v.Int(paramVCPUs), MemoryMiB: v.Int(paramMemory), HostCPUs: o.bound}
	if v.Str(paramVCPUs) == all || r.VCPUs < 0 {
		r.VCPUs = min(hostCPUs, o.bound)
	}
	if r.VCPUs == 0 {
		return o, fmt.Errorf("%s = 0: a virtual machine boots with at least one vCPU; write 1 or more, or %s", paramVCPUs, all)
	}
	// Clamped it would be another row's machine under this one's name.
	if r.VCPUs > o.bound {
		return o, fmt.Errorf("%s = %d: %s; write %d or less, or %s", paramVCPUs, r.VCPUs, mostHere(v.Int(paramMaxVCPUs), o.bound), o.bound, all)
	}
	r.Flavour, r.OverheadVCPUs, r.OverheadMiB = sizing.Flavour(v.Str(paramSizing)), v.Float(paramOverCPU), v.Int(paramOverMem)
	pod := sizing.Pod{CPULimit: spec.CPULimit, MemoryLimit: spec.MemoryLimit}
	if o.size, err = sizing.Of(pod, r); err != nil {
		return o, err
	}
	if o.static = r.Flavour == sizing.RS; o.static {
		o.bound = o.size.VCPUsTotal // Kata's runtime-rs sets default_maxvcpus to it as well
		err = o.bootable(pod, r.OverheadMiB)
	} else {
		o.plug = (spec.MemoryLimit + blockSize - 1) / blockSize * blockSize
	}
	if err != nil {
		return o, err
	}
	o.queues = o.size.NetworkThreads
	if n := v.Int(paramQueues); n > 0 {
		o.queues = n
	}
	return o, nil
}

// bootable says whether a machine of runtime-rs's size boots: limits alone make it.
func (o *options) bootable(p sizing.Pod, overheadMiB int) error {
	switch mib := o.size.MemoryBoot >> 20; {
	case o.size.VCPUsTotal > mostVCPUs:
		return fmt.Errorf("a CPU limit of %g and %s make %d vCPUs; a machine has %d at most", p.CPULimit, paramOverCPU, o.size.VCPUsTotal, mostVCPUs)
	case mib >= leastMemoryMiB:
		return nil
	case p.MemoryLimit == 0:
		return fmt.Errorf("%s = %s: with a CPU limit and no memory limit the machine has only %s, %d MiB, and boots in %d at least; set a memory-limit, such as 512MiB",
			paramSizing, sizing.RS, paramOverMem, mib, leastMemoryMiB)
	default:
		return fmt.Errorf("%s = %s: the memory limit and %s %d make a machine of %d MiB, and it boots in %d at least; raise memory-limit", paramSizing, sizing.RS, paramOverMem, overheadMiB, mib, leastMemoryMiB)
	}
}

// checkDisk says what the parameters of the disk of /data need.
func (o *options) checkDisk() error {
	if o.pinned && o.threads == 0 {
		return fmt.Errorf("%s: there are no I/O threads to bind; write %s: 1 or more, or leave the pair out with exclude: {%s: none, %s: true}", paramPinned, paramThreads, paramThreads, paramPinned)
	}
	named := fmt.Sprintf("%s = %d", paramThreads, o.threads)
	switch {
	case o.luks && o.fs != guest.FSExt4:
		return fmt.Errorf("%s = %s is made with ext4 alone; write %s: %s", paramDisk, diskLUKS, paramDiskFS, guest.FSExt4)
	case o.luks:
		named = fmt.Sprintf("%s = %s", paramDisk, diskLUKS)
	case o.fs != guest.FSExt4:
		named = fmt.Sprintf("%s = %s", paramDiskFS, o.fs)
	case o.threads == 0:
		return nil
	}
	if o.rootfs != rootBlock {
		return fmt.Errorf("%s: with %s = %s, /data is not a disk; write %s: %s", named, paramRootfs, o.rootfs, paramRootfs, rootBlock)
	}
	if o.snapshot {
		return fmt.Errorf("%s: a virtual machine with such a disk cannot be saved; write %s: %s", named, paramStart, startBoot)
	}
	return nil
}

// mostHere says what bounds the vCPUs.
func mostHere(most, bound int) string {
	if most > 0 {
		return fmt.Sprintf("%s is %d", paramMaxVCPUs, most)
	}
	return fmt.Sprintf("this host has %d processors, and %s = 0 takes them for the most", bound, paramMaxVCPUs)
}

// hostCPUs counts the processors of the host that this program may use.
func hostCPUs() int { return runtime.NumCPU() }
