package main

import (
	"os"
	"strings"

	"tare/collect/host"
	"tare/record"
	"tare/sandbox/vm"
)

// proven completes what the host says about KVM by the answer of the trial boot that
// the virtual machines' Check keeps in their cache, if one was made since the host
// started: opening the device alone says too much.
func proven(h record.Host, cache, bootID string) record.Host {
	if accel, boot := vm.Found(cache); boot != "" && boot == bootID {
		h.KVM = host.Proven(h.KVM, accel == record.AcceleratorKVM)
	}
	return h
}

// thisBoot names the time since the host started; "" if the kernel does not say.
func thisBoot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
