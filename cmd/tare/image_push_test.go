package main

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
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

// TestPushStudy: one command pushes tare and the images of a study that are not in a registry, and prints the flags for tare run.
// What a --set leaves out is not pushed.
func TestPushStudy(t *testing.T) {
	r := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(r.Close)
	at := strings.TrimPrefix(r.URL, "http://") + "/me"
	dir := t.TempDir()
	for _, name := range []string{"app", "other"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o755), os.WriteFile(filepath.Join(dir, name, "file"), []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const text = `study: own
factors: {sandbox: [process, gvisor]}
workloads:
  mine: {kind: command, command: /true, image: ./app}
  other: {kind: command, command: /true, image: ./other}
  theirs: {kind: command, command: /true, image: "registry.example.org/theirs:1"}
stop: {fixed: 1}
`
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "image", "push", "--study", "own.yaml", at, "--set", "workload=mine,theirs")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	const digest = `@sha256:[0-9a-f]{64}`
	if !regexp.MustCompile(`^--on k8s --tare-image ` + at + `/tare` + digest + ` --app \./app=` + at + `/app` + digest + "\n$").Match(out) {
		t.Errorf("%s", out)
	}
	plan := exec.CommandContext(t.Context(), bin, append([]string{"plan", "own.yaml", "--manifests", "--set", "workload=mine,theirs"}, strings.Fields(string(out))...)...)
	plan.Dir = dir
	if got, err := plan.CombinedOutput(); err != nil || !regexp.MustCompile(`image: `+at+`/app`+digest).Match(got) {
		t.Errorf("%v\n%s", err, got)
	}
	for want, args := range map[string][]string{
		"with --study one argument":                         {"--study", "own.yaml"},
		"there is no workload \"none\"":                     {"--study", "own.yaml", at, "--set", "workload=none"},
		"cannot push the image tare to 127.0.0.1:1/me/tare": {"--study", "own.yaml", "127.0.0.1:1/me"},
	} {
		cmd := exec.CommandContext(t.Context(), bin, append([]string{"image", "push"}, args...)...)
		cmd.Dir = dir
		if got, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(got), want) {
			t.Errorf("%v: %v\n%s\nwant %s", args, err, got, want)
		}
	}
}
