package process

import (
	"os"
	"path/filepath"
	"testing"

	"tare/internal/rootless"
	"tare/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m.Run)) }

func TestContract(t *testing.T) {
	sandboxtest.Run(t, New(filepath.Join(rootless.RunDir(), "test-process")), sandboxtest.Options{})
}

func TestOrdinaryUser(t *testing.T) { sandboxtest.AsOrdinary(t, "TestContract") }
