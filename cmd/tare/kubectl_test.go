package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlugin: kubectl finds the program under the name of a plugin, and its usage says how it was called.
func TestPlugin(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "kubectl-tare")
	if err := os.Symlink(bin, plugin); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor", "--help"}, "  kubectl tare doctor [flags]"},
		{[]string{"doctor", "--help"}, "  kubectl tare doctor --json"},
		{[]string{"--help"}, "  kubectl tare [command]"},
		{[]string{"rbac", "x"}, "see `kubectl tare rbac --help`"},
	} {
		out, _ := exec.CommandContext(t.Context(), plugin, c.args...).CombinedOutput() // an error is one of the answers
		if !bytes.Contains(out, []byte(c.want)) || strings.Contains(string(out), "\n  tare ") {
			t.Errorf("%v does not say %q:\n%s", c.args, c.want, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), bin, "rbac", "--help").Output(); err != nil || bytes.Contains(out, []byte("kubectl tare rbac")) {
		t.Errorf("under its own name: %v\n%s", err, out)
	}
}
