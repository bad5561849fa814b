package state_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/host/cgroup"
	"tare/host/network"
	"tare/host/state"
	"tare/host/state/statetest"
	"tare/site/claim"
)

func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv("STATE_TEST_HELPER"); ok {
		if err := help(strings.Fields(what)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("ready")
		if what == "nobody" {
			os.Exit(0)
		}
		time.Sleep(time.Minute) // until it is killed
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func help(args []string) error {
	switch args[0] {
	case "hold":
		_, err := state.Hold(args[1], "helper")
		return err
	case "litter":
		return litter()
	case "caller":
		return caller()
	case "nobody":
		return nobody()
	}
	return fmt.Errorf("no helper %q", args)
}

// litter makes one of everything that a run makes, for its maker to be killed.
func litter() error {
	bridge, err := network.Open(context.Background())
	if err != nil {
		return err
	}
	if _, err := bridge.Attach("test-litter"); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "taretest0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "taretest1"}); err != nil {
		return err
	}
	h, err := cgroup.Detect()
	if err != nil {
		return err
	}
	for i, rel := range []string{"tare/test-litter", "tare/test-litter/child", "tare/test-frozen"} {
		g, err := h.Create(rel, cgroup.Limits{})
		if err != nil {
			return err
		}
		sleep := exec.Command("sleep", "60")
		if i == 0 {
			sleep.Env = append(os.Environ(), state.Marker+"test-litter") // found twice, killed once
		}
		if err := sleep.Start(); err != nil {
			return err
		}
		if err := g.Add(sleep.Process.Pid); err != nil {
			return err
		}
	}
	if dir, ok := h.Path("freezer", "tare/test-frozen"); ok {
		if err := os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("FROZEN"), 0); err != nil {
			return err
		}
	}
	marked := exec.Command("sleep", "60")
	marked.Env = []string{"PATH=" + os.Getenv("PATH"), state.Marker + "test-litter"}
	if err := marked.Start(); err != nil {
		return err
	}
	for _, base := range []string{state.RunDir, state.LibDir} {
		dir, err := state.Dirs{Base: base}.Make("test-litter")
		if err != nil {
			return err
		}
		// One on the other, one within, one twice on the same point.
		for _, sub := range []string{"mnt", "mnt/in side", "mnt/in side"} {
			point := filepath.Join(dir, sub)
			if err := os.MkdirAll(point, 0o700); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", point, "tmpfs", 0, "size=64k"); err != nil {
				return err
			}
		}
	}
	return container()
}

// container leaves a container of a runtime that is a script.
func container() error {
	root := filepath.Join(state.RunDir, "oci", "test-runtime")
	if err := os.MkdirAll(filepath.Join(root, "test-litter"), 0o700); err != nil {
		return err
	}
	text := `{"binary": "/bin/sh", "args": ["-c", "[ \"$*\" = \"--root ` + root + ` delete --force test-litter\" ] && rmdir ` + root + `/test-litter", "sh"]}`
	return os.WriteFile(filepath.Join(root, "runtime.json"), []byte(text), 0o600)
}

func TestCleanAfterKill(t *testing.T) {
	statetest.HostLock(t)
	if err := network.Check(); err != nil {
		t.Skip("no bridge on this host: ", err)
	}
	tidy := func() { // where the test, now or the last time, failed half way
		if _, err := state.CleanSparing(context.Background(), false, others); err != nil {
			t.Error(err)
		}
	}
	tidy()
	statetest.Unchanged(t)
	// In a directory shared with others, so Clean may have to leave it.
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(state.RunDir, "oci", "test-runtime")) })
	t.Cleanup(tidy)
	cmd := helper(t, "litter")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	want := map[string]int{
		state.KindProcess: 4, state.KindContainer: 1, state.KindMount: 6, state.KindNetns: 2, state.KindLink: 2,
		state.KindCgroup: 2, state.KindDirectory: 3,
	}
	dry, err := state.CleanSparing(context.Background(), true, others)
	if err != nil {
		t.Fatal(err)
	}
	if others(state.KindDirectory, filepath.Join(state.RunDir, "oci")) {
		want[state.KindDirectory]-- // it has another's containers in it
	}
	if d := cmp.Diff(want, count(dry)); d != "" {
		t.Errorf("dry run (-want +got):\n%s%v", d, dry)
	}
	begin := time.Now()
	done, err := state.CleanSparing(context.Background(), false, others)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cleaned in %v", time.Since(begin))
	for _, l := range done {
		if l.Err != nil {
			t.Errorf("%s %s: %v", l.Kind, l.Name, l.Err)
		}
	}
	if d := cmp.Diff(names(dry), names(done)); d != "" {
		t.Errorf("the dry run promised otherwise (-dry +done):\n%s", d)
	}
	again, err := state.CleanSparing(context.Background(), false, others)
	if err != nil || len(again) > 0 {
		t.Errorf("second Clean: %v, %v", again, err)
	}
	for _, dir := range []string{state.RunDir, state.LibDir} {
		entries, err := filepath.Glob(dir + "/*test*")
		if err != nil || len(entries) > 0 {
			t.Errorf("left: %v, %v", entries, err)
		}
	}
}

// others tells what on this host is not from these tests.
func others(kind, name string) bool {
	switch {
	case kind == state.KindProcess:
		pid, _, _ := strings.Cut(name, " ")
		env, _ := os.ReadFile(filepath.Join("/proc", pid, "environ"))
		groups, _ := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
		return !strings.Contains(string(env), "test-litter") && !strings.Contains(string(groups), "/tare/test-")
	case kind == state.KindNetns && name == "tare-bridge":
		return false
	case kind == state.KindCgroup && name == cgroup.Top: // shared: ours when it is empty
		h, err := cgroup.Detect()
		if err != nil {
			return true
		}
		children, _ := h.Open(name).Children()
		return len(children) > 0
	case kind == state.KindDirectory && name == filepath.Join(state.RunDir, "oci"): // as well
		entries, _ := os.ReadDir(name)
		for _, e := range entries {
			if !strings.Contains(e.Name(), "test") {
				return true
			}
		}
		return false
	}
	return !strings.Contains(name, "test")
}

func count(ls []claim.Leftover) map[string]int {
	out := map[string]int{}
	for _, l := range ls {
		out[l.Kind]++
	}
	return out
}

func names(ls []claim.Leftover) []string {
	var out []string
	for _, l := range ls {
		out = append(out, l.Kind+" "+l.Name)
	}
	return out
}

// TestCleanSparesTheCaller: whoever calls may bear the marker.
func TestCleanSparesTheCaller(t *testing.T) {
	statetest.HostLock(t)
	t.Setenv("TARE_SANDBOX", "test-caller") // of the helper, then
	helper(t, "caller")
}

func caller() error {
	ls, err := state.Clean(context.Background(), true)
	if err != nil {
		return err
	}
	for _, l := range ls {
		for _, pid := range []int{os.Getpid(), os.Getppid()} {
			if l.Kind == state.KindProcess && strings.HasPrefix(l.Name, strconv.Itoa(pid)+" ") {
				return fmt.Errorf("would kill its own line: %s", l.Name)
			}
		}
	}
	return nil
}

// TestCleanWithoutRoot runs this program as nobody: it must say what it could
// not do, and do the rest.
func TestCleanWithoutRoot(t *testing.T) {
	statetest.HostLock(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Skip("no control groups on this host: ", err)
	}
	statetest.Unchanged(t)
	g, err := h.Create("tare/test-root-only", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	// A copy that nobody may execute, wherever the test program was built.
	dir, err := os.MkdirTemp("", "state-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "state.test")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied)
	cmd.Env = append(os.Environ(), "STATE_TEST_HELPER=nobody")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ready\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func nobody() error {
	needsRoot := func(what string, err error) error {
		if err == nil || !strings.Contains(err.Error(), "run as root") {
			return fmt.Errorf("%s does not say that it needs root: %w", what, err)
		}
		return nil
	}
	_, err := state.Hold(state.RunDir, "nobody")
	errs := []error{needsRoot("Hold", err), needsRoot("network.Check", network.Check())}
	ls, err := state.CleanSparing(context.Background(), false, others)
	errs = append(errs, needsRoot("Clean", err))
	found := false
	for _, l := range ls {
		if l.Kind == state.KindCgroup && l.Name == "tare/test-root-only" {
			found = true
			errs = append(errs, needsRoot("the group's removal", l.Err))
		}
	}
	if !found {
		errs = append(errs, fmt.Errorf("the group was not found: %v", ls))
	}
	return errors.Join(errs...)
}
