package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestBuiltFor: an image has no other program beside tare, and none that does not fit.
func TestBuiltFor(t *testing.T) {
	build := func(path, version, system, arch, cgo string) *debug.BuildInfo {
		return &debug.BuildInfo{Path: path, Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "CGO_ENABLED", Value: cgo}, {Key: "GOARCH", Value: arch}, {Key: "GOOS", Value: system},
		}}
	}
	own := build("tare/cmd/tare", "v1.2.3", "linux", "", "0")
	if arch, err := builtFor(build("tare/cmd/tare", "v1.2.3", "linux", "other", "0"), own); err != nil || arch != "other" {
		t.Errorf("%s %v", arch, err)
	}
	for want, b := range map[string]*debug.BuildInfo{
		"give a tare for Linux":          build("example.org/app", "v1.2.3", "linux", "other", "0"),
		"tare/cmd/tare for windows":      build("tare/cmd/tare", "v1.2.3", "windows", "other", "0"),
		"give the same version":          build("tare/cmd/tare", "v1.2.4", "linux", "other", "0"),
		"it is not static":               build("tare/cmd/tare", "v1.2.3", "linux", "other", "1"),
		"give one for another processor": build("tare/cmd/tare", "v1.2.3", "linux", runtime.GOARCH, "0"),
	} {
		if arch, err := builtFor(b, own); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %s %v", want, arch, err)
		}
	}
}

// TestNeeds: tare's own image has the programs of every workload, also those that only some parameters need.
func TestNeeds(t *testing.T) {
	var all []string
	for _, w := range workloads() {
		all = append(all, needs(w)...)
	}
	for _, want := range []string{"fio", "sysbench", "nproc", "true", "sleep"} {
		if !slices.Contains(all, want) {
			t.Errorf("the image has no %s: %v", want, all)
		}
	}
}

// TestInsecureRegistry: the flag has the name that `run --on k8s` gives it, too.
func TestInsecureRegistry(t *testing.T) {
	fl, insecure := pflag.NewFlagSet("push", pflag.ContinueOnError), false
	fl.BoolVar(&insecure, "insecure", false, "")
	alias(fl, "insecure-registry", "insecure")
	if err := fl.Parse([]string{"--insecure-registry"}); err != nil || !insecure {
		t.Error(insecure, err)
	}
}
