package vm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"tare/agent/guest"
	"tare/host/network"
	"tare/sandbox/vm/boot"
)

// hardware is a machine as its monitor is to make it.
type hardware struct {
	name  string
	vmm   string // that makes it; "" is QEMU
	dir   string // the machine's own, for cloud-hypervisor's sockets; whoever made it removes it
	accel string // kvm or tcg
	files boot.Files
	args  []string // the study's own
	box   bool     // QEMU is confined

	vcpus, maxVCPUs   int
	memory, maxMemory int64 // bytes; the second with what may be plugged in
	shared            bool  // other processes (virtiofsd) map the memory

	qmp, agent, console *os.File // QEMU's ends of stream sockets
	api, events         *os.File // cloud-hypervisor's, beside its console's
	incoming            *os.File // a saved machine to resume; nil boots
	disks               []disk
	shares              []*share
	tap                 *network.TapLink
	vhost               []*os.File // /dev/vhost-net, one for each queue; none: QEMU moves the packets
}

// disk is a virtio disk.
type disk struct {
	serial string // by which the guest finds it
	path   string
	over   string // of a qcow2 file: the raw image that it is laid over; "": path is raw itself
	frozen bool   // read-only
	luks   bool   // encrypted, with secret
	bus    string // busBlk or busSCSI; "" is busBlk
	queues int    // 0: one for each vCPU
	// threads are the numbers of the I/O threads that serve it. With several, each serves some of the
	// disk's queues. None: QEMU's main loop serves the disk.
	threads []int
	cache   string // one of cacheModes; "" is QEMU's own choice
	aio     string // one of aioModes; "" is QEMU's own choice
}

// line is a command line in the making, and the files that it names by number.
type line struct {
	args  []string
	files []*os.File
}

func (l *line) add(args ...string) { l.args = append(l.args, args...) }

// fd is the number that a file will have in the child: exec.Cmd.ExtraFiles.
func (l *line) fd(f *os.File) int {
	l.files = append(l.files, f)
	return len(l.files) + 2
}

// fds are the numbers of several, as QEMU takes them: "5:6".
func (l *line) fds(files []*os.File) string {
	n := make([]string, len(files))
	for i, f := range files {
		n[i] = strconv.Itoa(l.fd(f))
	}
	return strings.Join(n, ":")
}

// line is QEMU's command line: https://www.qemu.org/docs/master/system/invocation.html.
// Every socket and device comes as an open file, so that no path can be too long or in use.
func (h *hardware) line() *line {
	l := &line{}
	l.add("-name", h.name+",debug-threads=on", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot")
	if h.box {
		l.add("-sandbox", confined)
	}
	cpu := "max"
	if h.accel == accelKVM {
		cpu = "host"
	}
	l.add("-machine", "q35,accel="+h.accel+",memory-backend=mem0,usb=off,vmport=off", "-cpu", cpu,
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=1,threads=1,maxcpus=%d", h.vcpus, h.maxVCPUs, h.maxVCPUs))
	l.add("-object", h.backend("mem0", h.memory))
	memory := fmt.Sprintf("size=%dM", h.memory>>20)
	if h.maxMemory > h.memory {
		memory += fmt.Sprintf(",slots=1,maxmem=%dM", h.maxMemory>>20)
	}
	l.add("-m", memory, "-rtc", "base=utc")
	l.add("-kernel", h.files.Kernel, "-initrd", h.files.Initramfs, "-append", kernelLine(h.accel))
	l.socket("monitor", h.qmp)
	l.add("-mon", "chardev=monitor,mode=control")
	l.socket("console", h.console)
	l.add("-serial", "chardev:console")
	l.add("-object", "rng-random,id=rng0,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng0")
	l.add("-device", "virtio-serial-pci,id=serial0")
	l.socket("agent", h.agent)
	l.add("-device", "virtserialport,bus=serial0.0,chardev=agent,id=agent,name="+guest.PortName)
	for _, s := range h.shares {
		l.socket(s.tag, s.qemu)
		l.add("-device", fmt.Sprintf("vhost-user-fs-pci,queue-size=1024,chardev=%s,tag=%s", s.tag, s.tag))
	}
	for _, d := range h.disks {
		l.disk(d)
	}
	l.network(h)
	if h.incoming != nil {
		l.add("-incoming", fmt.Sprintf("fd:%d", l.fd(h.incoming)))
	}
	l.add(h.args...)
	return l
}

// kernelLine is what the guest's kernel is told. "quiet", because each line on an
// emulated serial port takes time; errors are printed all the same. An emulated
// processor has none of the flaws that the mitigations are against, and would be
// weighed with them; a real one runs with what the kernel thinks right.
func kernelLine(accel string) string {
	s := "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check net.ifnames=0"
	if accel == accelTCG {
		s += " mitigations=off"
	}
	return s
}

// backend is an object that memory comes from.
func (h *hardware) backend(id string, size int64) string {
	if h.shared {
		return fmt.Sprintf("memory-backend-memfd,id=%s,size=%dM,share=on", id, size>>20)
	}
	return fmt.Sprintf("memory-backend-ram,id=%s,size=%dM", id, size>>20)
}

func (l *line) socket(id string, f *os.File) {
	l.add("-chardev", fmt.Sprintf("socket,id=%s,fd=%d", id, l.fd(f)))
}

// disk adds a virtio disk. In JSON no character of a path has a meaning of its own. A
// failure, a full disk of the host above all, is the guest's to see: as QEMU has it of
// itself it would stop the machine for good.
func (l *line) disk(d disk) {
	file := func(path string) map[string]any {
		node := map[string]any{"driver": "file", "filename": path}
		if isBlockDevice(path) {
			node["driver"] = "host_device"
		}
		return node
	}
	own := file(d.path)
	if d.aio != "" {
		own["aio"] = d.aio
	}
	blockdev := map[string]any{"driver": "raw", "node-name": d.serial, "read-only": d.frozen, "file": own}
	if d.cache == cacheNone {
		direct := map[string]any{"direct": true}
		blockdev["cache"], own["cache"] = direct, direct
	}
	if d.over != "" {
		blockdev["driver"] = "qcow2"
		blockdev["backing"] = map[string]any{"driver": "raw", "read-only": true, "file": file(d.over)}
	}
	if d.luks {
		l.add("-object", secret)
		blockdev["driver"], blockdev["key-secret"] = diskLUKS, "key0"
	}
	node, err := json.Marshal(blockdev)
	if err != nil {
		panic(err) // strings and truth values can be written
	}
	l.add("-blockdev", string(node))
	l.front(d)
}

// isBlockDevice asks the file itself: below /dev, there are files in memory too (/dev/shm).
func isBlockDevice(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice
}

// front adds what the guest sees of a disk. A SCSI disk has its own controller, because the
// queues and the threads belong to the controller.
func (l *line) front(d disk) {
	queued := map[string]any{"driver": "virtio-blk-pci"}
	shown := queued
	queues := "num-queues"
	if d.bus == busSCSI {
		queues = "num_queues"
		controller := "scsi-" + d.serial
		queued = map[string]any{"driver": "virtio-scsi-pci", "id": controller}
		shown = map[string]any{"driver": "scsi-hd", "bus": controller + ".0"}
	}
	if d.queues > 0 {
		queued[queues] = d.queues
	}
	var mapping []map[string]string
	for _, n := range d.threads {
		name := "io" + strconv.Itoa(n)
		if object := "iothread,id=" + name; !slices.Contains(l.args, object) {
			l.add("-object", object)
		}
		mapping = append(mapping, map[string]string{"iothread": name})
	}
	switch len(mapping) {
	case 0:
	case 1: // older versions have this too
		queued["iothread"] = mapping[0]["iothread"]
	default:
		queued[mappingOption] = mapping
	}
	shown["drive"], shown["serial"], shown["werror"], shown["rerror"] = d.serial, d.serial, "report", "report"
	l.device(queued)
	if d.bus == busSCSI {
		l.device(shown)
	}
}

// device adds a device in JSON, the only form that lists of I/O threads have.
func (l *line) device(options map[string]any) {
	text, err := json.Marshal(options)
	if err != nil {
		panic(err) // strings and numbers can be written
	}
	l.add("-device", string(text))
}

// network adds the card: a pair of queues for each file of the tap, and a vector for
// each queue, for the configuration and for control. It has no ROM to boot from.
func (l *line) network(h *hardware) {
	if h.tap == nil {
		return
	}
	dev := "tap,id=net0,fds=" + l.fds(h.tap.Files)
	if len(h.vhost) > 0 {
		dev += ",vhost=on,vhostfds=" + l.fds(h.vhost)
	}
	card := "virtio-net-pci,netdev=net0,romfile=,mac=" + h.tap.MAC.String()
	if n := len(h.tap.Files); n > 1 {
		card += fmt.Sprintf(",mq=on,vectors=%d", 2*n+2)
	}
	l.add("-netdev", dev, "-device", card)
}
