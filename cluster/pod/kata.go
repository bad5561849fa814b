package pod

import (
	"tare/param"
	"tare/sizing"
)

// Factors of classes of Kata Containers, by the names that the sandbox vm has for the same.
const (
	factorVCPUs    = "default_vcpus"
	factorMemory   = "default_memory"
	factorMaxVCPUs = "max_vcpus"
)

// Words of these factors.
const (
	configured = "configured"
	everyone   = "all"
)

const (
	mostVCPUs   = 240     // Kata's bound (govmmQemu, defaultMaxVCPUs)
	leastMemory = 256     // MiB; Kata refuses less (MinHypervisorMemory)
	mostMemory  = 1 << 24 // MiB
)

// Sizing says, after a comma, which of Kata's runtimes sizes a pod's machine. It is "" for other classes.
func (k *RuntimeClass) Sizing() string {
	switch sizing.FlavourOf(k.handler) {
	case sizing.RS:
		return ", sized by Kata's runtime-rs"
	case sizing.Go:
		return ", sized by Kata's Go runtime"
	}
	if sizing.IsKata(k.handler) {
		return ", sized by Kata's Go runtime or runtime-rs: the handler's name does not say which, so tare assumes the Go runtime unless a study with --observe finds the other"
	}
	return ""
}

// ParamsOf returns the parameters of a class if only its name is known.
func ParamsOf(class string) []param.Param { return (&RuntimeClass{class: class}).Params() }

// ofKata are the annotations by which a pod has its virtual machine sized
// (https://github.com/kata-containers/kata-containers/blob/main/docs/how-to/how-to-set-sandbox-config-kata.md).
func ofKata() []annotation {
	const hypervisor = "io.katacontainers.config.hypervisor."
	help := func(name, what string) string {
		return what + ", by annotation " + hypervisor + name + "; configured leaves this to the node"
	}
	number := func(factor, name, what string, lo, hi float64, words ...string) annotation {
		return annotation{name: hypervisor + name, numbers: true, param: param.Param{
			Name: factor, Type: param.Int, Default: configured, Min: lo, Max: hi, Words: append([]string{configured}, words...), Help: help(name, what),
		}}
	}
	return []annotation{
		number(factorVCPUs, "default_vcpus", "vCPUs at boot; all, or -1, means as many as the node has processors", -1, mostVCPUs, everyone),
		number(factorMemory, "default_memory", "MiB of memory at boot", leastMemory, mostMemory),
		number(factorMaxVCPUs, "default_maxvcpus", "maximum vCPUs; 0 means as many as the node has processors", 0, mostVCPUs),
	}
}
