package image

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

	"tare/host/rootfs"
)

// needTools skips where root or a program of the host is missing.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	for _, tool := range tools {
		if _, ok := rootfs.Lookup(tool); !ok {
			t.Skipf("this host has no %s", tool)
		}
	}
}

// TestStepIsIsolated: what a command of a recipe sees and may do.
func TestStepIsIsolated(t *testing.T) {
	needTools(t, "sh", "cat", "ls", "mount", "mknod", "chroot", "chmod", "grep", "true")
	script := `{
echo pid $$
echo interfaces $(cat /proc/net/dev | cat | grep -c : )
echo others $(ls -d /proc/[0-9]* | grep -c .)
echo seen $(ls -d /proc/[0-9]*) .
echo root $(ls /)
mount -t tmpfs x /data 2>/dev/null && echo can mount
mknod /data/null c 1 3 2>/dev/null && echo can mknod
chroot / true 2>/dev/null && echo can chroot
echo 1 2>/dev/null >/proc/sys/kernel/panic && echo can write sysctl
echo privileges $(grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status)
echo time $SOURCE_DATE_EPOCH seed $PYTHONHASHSEED
echo gone > /tmp/x; echo gone > /run/x
umask
} > /app/said
chmod 0604 /app/said
`
	m := recipes("app", "programs: [sh, cat, ls, grep, mount, mknod, chroot, chmod, \"true\"]\nfiles: [{from: a.txt, to: /app/a.txt}]\nrun: [[sh, /app/a.txt]]\n")
	m["app/a.txt"].Data = []byte(script)
	b := &Builder{Cache: t.TempDir(), Recipes: m}
	before := procOptions(t)
	tree := mustBuild(t, b, "app")
	if after := procOptions(t); after != before {
		t.Errorf("the host's own /proc has the options %q, before %q", after, before)
	}
	said, err := os.ReadFile(filepath.Join(tree.Path, "app/said"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(said)
	for _, want := range []string{"interfaces 1\n", "time " + strconv.Itoa(sealTime) + " seed 0\n", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "0022\n",
		"root app bin data dev etc lib lib32 lib64 libx32 proc root run sbin sys tmp usr var\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it did not say %q", want)
		}
	}
	if strings.Contains(text, "can ") {
		t.Error("it could do what it must not")
	}
	if one := "/proc/" + strconv.Itoa(os.Getpid()) + " "; hidesProcesses(t) && strings.Contains(text, one) {
		t.Error("it sees the process of this test")
	}
	if t.Failed() {
		t.Logf("it said:\n%s", text)
	}
	for _, gone := range []string{"tmp/x", "run/x", "dev/null"} {
		if _, err := os.Lstat(filepath.Join(tree.Path, gone)); err == nil {
			t.Errorf("%s stays in the tree", gone)
		}
	}
	if st, err := os.Stat(filepath.Join(tree.Path, "app/said")); err != nil || st.Mode() != 0o604 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

// procOptions are those of the super block of the host's /proc.
func procOptions(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		if strings.Contains(l, " /proc ") {
			_, super, _ := strings.Cut(l, " - ")
			return super
		}
	}
	t.Fatal("there is no /proc")
	return ""
}

// hidesProcesses: from Linux 5.8 on, hidepid is of one mount alone.
func hidesProcesses(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(b), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 5 || major == 5 && minor >= 8
}

// TestStepIsBounded: what a command starts at once has its limits, too, and too
// many processes are ended.
func TestStepIsBounded(t *testing.T) {
	needTools(t, "sh", "sleep", "cat")
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", `programs: [sh, sleep, cat]
run: [[sh, -c, "(sh -c 'sleep 2; cat /proc/self/limits > /limits') & wait"]]
`)}
	limits, err := os.ReadFile(filepath.Join(mustBuild(t, b, "app").Path, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]uint64{"Max core file size": 0, "Max file size": stepFile, "Max data size": stepMemory} {
		_, rest, _ := strings.Cut(string(limits), name)
		if f := strings.Fields(rest); len(f) < 2 || f[1] != strconv.FormatUint(most, 10) {
			t.Errorf("%s: it has not %d in\n%s", name, most, limits)
		}
	}
	b.Recipes = recipes("app", "programs: [sh, sleep]\nrun: [[sh, -c, \"while true; do sleep 60 & done\"]]\n")
	if _, err := b.Build(t.Context(), "app"); err == nil || !strings.Contains(err.Error(), "more than 1000 processes") {
		t.Errorf("%v", err)
	}
}

func TestStepFails(t *testing.T) {
	needTools(t, "sh")
	for run, want := range map[string]string{
		`[sh, -c, "echo it is so >&2; exit 3"]`: "it is so",
		"[no-such-command]":                     "the tree has no no-such-command; add the package",
		"[./a]":                                 "must be a name or an absolute path",
	} {
		b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", "programs: [sh]\nrun: ["+run+"]\n")}
		if _, err := b.Build(t.Context(), "app"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", run, err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(b.Cache, buildingPrefix+"*")); len(left) > 0 {
			t.Errorf("%s: left %v", run, left)
		}
	}
}

func TestStepIsCancelled(t *testing.T) {
	needTools(t, "sh", "sleep")
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", "programs: [sh, sleep]\nrun: [[sh, -c, \"sleep 60 & sleep 60\"]]\n")}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	if _, err := b.Build(ctx, "app"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if d := time.Since(begun); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
}

// builderEnv makes this test binary a build that is to be killed.
const builderEnv = "TARE_TEST_BUILD_IN"

// TestKillLeavesNoMounts: kill -9 in the midst of a command ends it and leaves
// no mount; Leftovers finds the tree, the next build goes through.
func TestKillLeavesNoMounts(t *testing.T) {
	if dir := os.Getenv(builderEnv); dir != "" {
		_, err := (&Builder{Cache: dir, Recipes: recipes("app", "programs: [sh, sleep]\nrun: [[sh, -c, \"echo $$ > /started; sleep 100\"]]\n")}).Build(context.Background(), "app")
		t.Fatal(err)
	}
	needTools(t, "sh", "sleep")
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillLeavesNoMounts$")
	cmd.Env = append(os.Environ(), builderEnv+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := ""
	for range 500 {
		if found, _ := filepath.Glob(filepath.Join(dir, buildingPrefix+"*", "started")); len(found) > 0 {
			started = found[0]
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if started == "" {
		_ = cmd.Process.Kill()
		t.Fatal("the command did not start")
	}
	tree := filepath.Dir(started)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for range 500 { // the kernel takes the namespace down
		if !anyRootIn(tree) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if anyRootIn(tree) {
		t.Error("the command lives on")
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), tree) {
		t.Error("a mount is left")
	}
	left, err := Leftovers(dir, false)
	if err != nil || len(left) != 1 || left[0] != tree {
		t.Errorf("leftovers %v, %v; want %s", left, err, tree)
	}
}

// anyRootIn says whether a process has its working directory in the tree, seen
// from here, where its root is not mounted.
func anyRootIn(tree string) bool {
	procs, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), filepath.Base(tree)) {
			return true
		}
	}
	return false
}
