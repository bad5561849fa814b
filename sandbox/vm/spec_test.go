package vm

import (
	"os"
	"path/filepath"
	"testing"

	"tare/sandbox"
	"tare/sandbox/sandboxtest"
)

func sandboxtestSpec(t *testing.T) sandbox.Spec {
	data := filepath.Join(t.TempDir(), "data")
	_ = os.Mkdir(data, 0o755)
	return sandbox.Spec{Name: "first-vm", Dir: t.TempDir(), Root: sandboxtest.Root(t), Data: data, Options: map[string]string{"accel": "tcg"}}
}
