package oci

import (
	"os"
	"testing"

	"tare/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m.Run)) }

func kind(name, runtime string, args ...string) *Kind {
	return New(Config{
		Name: name, About: "a runtime under test", Runtime: runtime, Args: args,
		Install: "apt-get install " + runtime, StateDir: "/run/tare/test-oci",
	})
}

func TestContract(t *testing.T) {
	for _, k := range []*Kind{
		kind("runc", "runc"),
		kind("crun", "crun"),
		kind("runsc-systrap", "runsc", "--platform=systrap", "--network=sandbox"),
		kind("runsc-ptrace", "runsc", "--platform=ptrace", "--network=sandbox"),
	} {
		t.Run(k.Name(), func(t *testing.T) { sandboxtest.Run(t, k, sandboxtest.Options{}) })
	}
}
