package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"tare/collect/host"
	"tare/record"
)

// proven completes what the host says about KVM by the answer of the trial boot that
// the virtual machines' Check keeps in their cache, if one was made since the host
// started: opening the device alone says too much.
func proven(h record.Host, cache, bootID string) record.Host {
	var kept struct {
		Boot  string `json:"boot_id"`
		Accel string `json:"accelerator"`
	}
	b, err := os.ReadFile(filepath.Join(cache, "accelerator.json")) //nolint:gosec // in our own cache
	if err != nil || json.Unmarshal(b, &kept) != nil || kept.Boot == "" || kept.Accel == "" || kept.Boot != bootID {
		return h
	}
	h.KVM = host.Proven(h.KVM, kept.Accel == record.AcceleratorKVM)
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
