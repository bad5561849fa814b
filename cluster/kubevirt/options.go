package kubevirt

import (
	"context"
	"errors"
	"fmt"

	kv "kubevirt.io/api/core/v1"

	"tare/param"
	"tare/sandbox"
)

// Parameters.
const (
	paramCores     = "cores"
	paramMemory    = "guest-memory"
	paramBus       = "bus"
	paramPolicy    = "io-threads-policy"
	paramPool      = "supplemental-pool-thread-count"
	paramBlockMQ   = "block-multi-queue"
	paramNetMQ     = "network-multi-queue"
	paramBinding   = "binding"
	paramDedicated = "dedicated-io-thread"
)

// Words of parameters.
const (
	none       = "none"
	masquerade = "masquerade"
	bridge     = "bridge"
	busVirtio  = string(kv.DiskBusVirtio)
	pool       = string(kv.IOThreadsPolicySupplementalPool)
)

// Bounds of a machine.
const (
	mostCores   = 512
	leastMemory = 128     // MiB; a Linux with cloud-init starts with no less
	mostMemory  = 4 << 20 // MiB
	mostThreads = 256
)

// Params implements sandbox.Kind.
func (*Machines) Params() []param.Param {
	return []param.Param{
		{Name: paramCores, Type: param.Int, Default: "1", Min: 1, Max: mostCores, Help: "vCPUs: cores of one socket, one thread each"},
		{Name: paramMemory, Type: param.Int, Default: "2048", Min: leastMemory, Max: mostMemory, Help: "MiB of memory that the guest has"},
		{Name: paramBus, Type: param.Enum, Default: busVirtio, Words: []string{busVirtio, string(kv.DiskBusSCSI), string(kv.DiskBusSATA)}, Help: "of the root disk and the volumes' disks"},
		{Name: paramPolicy, Type: param.Enum, Default: none, Words: []string{none, string(kv.IOThreadsPolicyShared), string(kv.IOThreadsPolicyAuto), pool},
			Help: "ioThreadsPolicy: none has the VMM's main loop serve the disks"},
		{Name: paramPool, Type: param.Int, Default: "0", Min: 0, Max: mostThreads, Help: "I/O threads that serve every virtio disk, with " + paramPolicy + ": " + pool},
		{Name: paramBlockMQ, Type: param.Bool, Default: "false", Help: "blockMultiQueue: each virtio disk has a queue for each vCPU"},
		{Name: paramNetMQ, Type: param.Bool, Default: "false", Help: "networkInterfaceMultiqueue: the network has a queue for each vCPU"},
		{Name: paramBinding, Type: param.Enum, Default: masquerade, Words: []string{masquerade, bridge}, Help: "how the guest is on the pod network; a cluster may forbid bridge"},
		{Name: paramDedicated, Type: param.Bool, Default: "false", Help: "dedicatedIOThread: each volume's disk has an I/O thread of its own"},
	}
}

var errNoDisk = errors.New("a virtual machine needs a disk; define one in the section sandboxes: NAME: {kind: kubevirt, image: REFERENCE}")

// CheckOptions implements sandbox.Chooser. Beside what KubeVirt refuses, it refuses settings without
// effect: a row of results must not bear the name of what was not in force
// (pkg/virt-launcher/virtwrap/converter of KubeVirt 1.6).
func (k *Machines) CheckOptions(options map[string]string) error {
	v, err := param.Fill(k.Params(), options)
	if err != nil {
		return err //nolint:wrapcheck // param says which one
	}
	virtio, policy, threads := v.Str(paramBus) == busVirtio, v.Str(paramPolicy), v.Int(paramPool)
	switch {
	case k.disk == nil:
		return errNoDisk
	case !virtio && policy != none:
		return noEffect(paramPolicy+": "+policy, "only virtio disks have I/O threads")
	case !virtio && v.Bool(paramBlockMQ):
		return noEffect(paramBlockMQ+": true", "only virtio disks have queues")
	case !virtio && v.Bool(paramDedicated):
		return fmt.Errorf("KubeVirt refuses %s: true with %s: %s; write %s: %s", paramDedicated, paramBus, v.Str(paramBus), paramBus, busVirtio)
	case policy == pool && threads == 0:
		return fmt.Errorf("%s: %s needs %s; write a number from 1", paramPolicy, pool, paramPool)
	case policy != pool && threads != 0:
		return fmt.Errorf("%s has an effect only with %s: %s; write that, or 0 threads", paramPool, paramPolicy, pool)
	case policy == pool && v.Bool(paramDedicated):
		return fmt.Errorf("%s: true has no effect with %s: %s, whose threads serve every disk; change one of them", paramDedicated, paramPolicy, pool)
	}
	return nil
}

// NoteOptions implements sandbox.Noter: a virtio disk without blockMultiQueue has one queue, which one thread serves.
func (k *Machines) NoteOptions(options map[string]string) string {
	v, err := param.Fill(k.Params(), options)
	if n := v.Int(paramPool); err == nil && n > 1 && !v.Bool(paramBlockMQ) {
		return fmt.Sprintf("%s: %d serves a disk's queues, and a disk has one queue without %s; write %s: true, or one thread", paramPool, n, paramBlockMQ, paramBlockMQ)
	}
	return ""
}

func noEffect(setting, why string) error {
	return fmt.Errorf("%s has no effect: %s; write %s: %s", setting, why, paramBus, busVirtio)
}

// CheckHere implements sandbox.Chooser.
func (k *Machines) CheckHere(_ context.Context, spec sandbox.Spec) error {
	if spec.API {
		return errors.New("programs in a virtual machine have no token for the cluster's API; measure this workload in pods")
	}
	v, err := param.Fill(k.Params(), spec.Options)
	if err != nil {
		return err //nolint:wrapcheck // param says which one
	}
	if guest := int64(v.Int(paramMemory)) << 20; spec.MemoryLimit > 0 && spec.MemoryLimit < guest {
		return fmt.Errorf("a memory limit of %s is less than the guest's memory of %s; raise the limit, or lower %s", param.FormatSize(spec.MemoryLimit), param.FormatSize(guest), paramMemory)
	}
	return nil
}
