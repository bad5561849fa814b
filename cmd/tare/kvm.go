package main

import (
	"os"
	"path/filepath"
	"strings"

	collecthost "tare/collect/host"
	"tare/host"
	"tare/record"
	"tare/sandbox/vm"
)

// proven completes what the host says about KVM by the answer of the trial boot that
// the virtual machines' Check keeps in their cache, if one was made since the host
// started: opening the device alone says too much.
func proven(h record.Host, cache, bootID string) record.Host {
	if accel := accelerator(cache, bootID); accel != "" {
		h.KVM = collecthost.Proven(h.KVM, accel == record.AcceleratorKVM)
	}
	return h
}

// provenKVM reports whether a machine has been booted with KVM since the host started. Without it
// machines are emulated: they take seconds to start, and their ratios are those of an emulator.
func provenKVM() bool { return accelerator(machineCache(), thisBoot()) == record.AcceleratorKVM }

// accelerator is what machines were shown to run with since the host started; "" if none was tried.
func accelerator(cache, bootID string) string {
	accel, boot := vm.Found(cache)
	if boot == "" || boot != bootID {
		return ""
	}
	return accel
}

// machineCache is what virtual machines keep between runs.
func machineCache() string { return filepath.Join(host.DefaultDirs().Cache, "vm") }

// thisBoot names the time since the host started; "" if the kernel does not say.
func thisBoot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
