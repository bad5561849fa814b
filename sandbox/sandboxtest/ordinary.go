package sandboxtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/state/statetest"
	"tare/internal/rootless"
	"tare/sandbox"
	"tare/volume"
)

// enterVariable has Main go on in a user namespace, with that directory for runs.
const enterVariable = "TARE_TEST_ENTER"

// nobodyElse is an ordinary user without other processes: another one's `tare clean` may kill
// what its user's runs left.
const nobodyElse = "65532"

// AsOrdinary runs a test of the calling package as an ordinary user, whose sandboxes are in a
// user namespace.
func AsOrdinary(t *testing.T, test string) {
	t.Helper()
	statetest.HostLock(t)
	dir, err := os.MkdirTemp("", "tare-ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, home := filepath.Join(dir, "test"), filepath.Join(dir, "home")
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const prepare = `chmod 755 "$0"; cp "$1" "$2"; install -d -m 700 -o "$4" -g "$4" "$3"`
	if out, err := exec.Command("sh", "-euc", prepare, dir, me, self, home, nobodyElse).CombinedOutput(); err != nil { //nolint:gosec // the test's own words
		t.Fatalf("%v: %s", err, out)
	}
	as := []string{"--reuid", nobodyElse, "--regid", nobodyElse, "--clear-groups", self}
	cmd := exec.Command("setpriv", append(as, "-test.run=^"+test+"$", "-test.v", "-test.timeout=10m")...) //nolint:gosec // the test's own words
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "GOCOVERDIR=", enterVariable+"="+filepath.Join(home, "run"))
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// enter is Main's part of AsOrdinary.
func enter(stderr io.Writer) {
	if dir := os.Getenv(enterVariable); dir != "" {
		rootless.Enter(dir)
		if err := rootless.Check(); err != nil {
			_, _ = io.WriteString(stderr, err.Error()+"\n")
		}
	}
}

// refused are the tests of what a sandbox in a user namespace cannot have.
func refused() []string { return []string{"UserAndDirectory", "Volumes", "CPULimit", "MemoryLimit"} }

// refuses tests that the kind says so before a trial.
func (s *suite) refuses(t *testing.T) {
	t.Helper()
	c, ok := s.kind.(sandbox.Chooser)
	if !ok {
		t.Fatal("the kind cannot refuse what this host cannot give")
	}
	for what, want := range map[string]sandbox.Want{
		"CPU":    {CPULimit: 1},
		"memory": {MemoryLimit: 1 << 30},
		"cpus":   {CPUs: "0"},
		"image":  {Volumes: []volume.Volume{{Name: "data", Medium: volume.Image}}},
		"block":  {Volumes: []volume.Volume{{Name: "data", Mode: volume.Block}}},
	} {
		if err := c.CheckHere(t.Context(), sandbox.Spec{Want: want}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s is not refused in one line: %v", what, err)
		}
	}
}
