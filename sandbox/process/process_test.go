package process

import (
	"os"
	"testing"

	"tare/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m.Run)) }

func TestContract(t *testing.T) {
	sandboxtest.Run(t, New("/run/tare/test-process"), sandboxtest.Options{})
}
