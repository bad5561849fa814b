package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// farHost is an sshd of the test's own. Unless it is for real sandboxes, who comes is an ordinary
// user there, as in asUser, with a home of their own: nobody waits for the host.
type farHost struct {
	url  string
	home string
	env  []string // of a tare here that comes
	log  *bytes.Buffer
}

func newFarHost(t *testing.T, real bool) *farHost {
	t.Helper()
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("sshd is missing; install OpenSSH's server (openssh-server)")
	}
	dir := t.TempDir()
	far := ordinary(t)
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	port := freePort(t)
	become := ""
	if os.Geteuid() == 0 {
		if !real {
			become = "setpriv --reuid " + nobody + " --regid " + nobody + " --clear-groups "
		}
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd's unprivileged part is
			t.Fatal(err)
		}
	}
	server := fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s/host
AuthorizedKeysFile %s/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
ForceCommand printf "\033[2Jgreeting\n" >&2; echo welcome; cd %s && env HOME=%s XDG_CACHE_HOME= XDG_RUNTIME_DIR= XDG_STATE_HOME=%s/.state %s/bin/sh -c "$SSH_ORIGINAL_COMMAND"
`, port, dir, dir, far.home, far.home, far.home, become)
	client := fmt.Sprintf("IdentityFile %s/user\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\nStrictHostKeyChecking accept-new\nBatchMode yes\n", dir, dir)
	wrapper := "#!/bin/sh\nexec /usr/bin/ssh -F " + dir + "/client \"$@\"\n"
	for name, text := range map[string]string{"server": server, "client": client, "ssh": wrapper} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := &farHost{url: fmt.Sprintf("ssh://%s@127.0.0.1:%d", userName(t), port), home: far.home, log: new(bytes.Buffer)}
	h.env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(dir, "server"))
	cmd.Stderr = h.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd:\n%s", h.log)
		}
	})
	until(t, "sshd listens", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return h
}

func userName(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("id", "-un").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// until waits for what is wanted.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// tare runs tare here to its end. It returns what it printed and its exit code.
func (h *farHost) tare(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env, cmd.Dir = h.env, dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// copies are the binaries that are on the far host.
func (h *farHost) copies(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(h.home, ".cache", "tare", "ssh", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// serving are the processes that serve there.
func (h *farHost) serving(t *testing.T) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		raw, _ := os.ReadFile(file) // it may have ended
		if bytes.HasPrefix(raw, []byte(h.home)) && bytes.Contains(raw, []byte("internal\x00site")) {
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// farStudy takes so many blocks, each of some hundredths of a second.
func farStudy(t *testing.T, blocks int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := fmt.Sprintf("study: far\ncompare: slowdown\nbaseline: \"1\"\nfactors:\n  sandbox: [fake]\n  slowdown: [1, 1.5]\nworkloads:\n  idle: {kind: noop, sleeps: 5}\nstop: {fixed: %d}\n", blocks)
	if err := os.WriteFile(filepath.Join(dir, "far.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFarRun: the first run takes the binary along, the second finds it, and one that was changed
// there is not used. What was measured is here.
func TestFarRun(t *testing.T) {
	h := newFarHost(t, false)
	dir := farStudy(t, 3)
	out, code := h.tare(t, dir, "run", "--host", h.url, "far.yaml")
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "@127.0.0.1: \\x1b[2Jgreeting\n") {
		t.Errorf("what the machine says is not escaped:\n%q", out)
	}
	if code != 0 || !strings.Contains(out, "copying tare to ") || !strings.Contains(out, "127.0.0.1: without root, sandboxes run in a user namespace") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if out, code := h.tare(t, dir, "report", "results/far"); code != 0 || !strings.Contains(out, "slowdown=1.5") && !strings.Contains(out, "1.5") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	kept := h.copies(t)
	if len(kept) != 1 {
		t.Fatalf("on the far host: %q", kept)
	}
	for _, path := range []string{filepath.Dir(kept[0]), kept[0]} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if out, code := h.tare(t, dir, "run", "--host", h.url, "--fresh", "far.yaml"); code != 0 || strings.Contains(out, "copying") {
		t.Errorf("the second run: exit code %d\n%s", code, out)
	}
	if err := os.WriteFile(kept[0], []byte("#!/bin/sh\necho hostile >"+dir+"/hostile\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, code := h.tare(t, dir, "plan", "--host", h.url, "far.yaml"); code != 0 || !strings.Contains(out, "copying") {
		t.Errorf("a changed binary: exit code %d\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "hostile")); err == nil {
		t.Error("the changed binary was run")
	}
	until(t, "nothing serves there", func() bool { return len(h.serving(t)) == 0 })
}

// TestFarEnds: whatever ends the tare here, the one there ends too, and what was finished is here.
func TestFarEnds(t *testing.T) {
	h := newFarHost(t, false)
	for name, c := range map[string]struct {
		end  func(*exec.Cmd)
		code int
		want string
	}{
		"Ctrl-C": {func(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }, exitInterrupted, "interrupted; go on with"}, // ssh gets it, too
		"killed": {func(cmd *exec.Cmd) { _ = cmd.Process.Kill() }, -1, ""},
		"lost":   {func(*exec.Cmd) { h.kill(t) }, exitHost, "the connection to " + userName(t) + "@127.0.0.1 is lost (ssh has ended); whatever runs there ends within a minute"},
		"died":   {func(*exec.Cmd) { _ = syscall.Kill(h.serving(t)[0], syscall.SIGKILL) }, exitHost, "is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := farStudy(t, 10_000)
			cmd := exec.Command(bin, "run", "--host", h.url, "far.yaml")
			cmd.Env, cmd.Dir, cmd.SysProcAttr = h.env, dir, &syscall.SysProcAttr{Setpgid: true}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout, cmd.Stderr = w, w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			var out strings.Builder
			ended := false
			buf := make([]byte, 4096)
			for {
				n, err := r.Read(buf)
				out.Write(buf[:n])
				if !ended && strings.Contains(out.String(), "trial 4,") {
					ended = true
					c.end(cmd)
				}
				if errors.Is(err, io.EOF) {
					break
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d\n%s", code, tail(out.String(), 1000))
			}
			until(t, "nothing serves there", func() bool { return len(h.serving(t)) == 0 })
			if left, _ := filepath.Glob(filepath.Join(h.home, ".state", "tare", "*", "t*")); len(left) > 0 && name != "died" {
				t.Errorf("left there: %q", left)
			}
			if out, code := h.tare(t, dir, "export", "results/far", "--format", "jsonl"); code != 0 || strings.Count(out, "\n") < 4 {
				t.Errorf("what is kept: exit code %d\n%s", code, tail(out, 500))
			}
		})
	}
}

// TestFarWeigh: a command is weighed there, and what it is made of reaches it as it was typed.
func TestFarWeigh(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	h := newFarHost(t, true)
	dir := t.TempDir()
	arg := "it's $HOME \"and\" `touch " + dir + "/hostile` \\"
	out, code := h.tare(t, dir, "weigh", "--wait", "--host", h.url, "--in", "runc", "--budget", "1s", "-o", "out", "--save", "s.yaml", "--",
		"sh", "-c", `test "$1" = "$(printf "it's \044HOME \042and\042 \140touch `+dir+`/hostile\140 \134")"`, "sh", arg)
	if code != 0 || !strings.Contains(out, "runc") || !strings.Contains(out, "results: out ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	raw, _ := os.ReadFile(filepath.Join(dir, "s.yaml"))
	if !strings.Contains(string(raw), "cwd: \""+h.home+"\"") {
		t.Errorf("the command does not run where a connection begins, %s:\n%s", h.home, raw)
	}
	if _, err := os.Stat(filepath.Join(dir, "hostile")); err == nil {
		t.Error("a shell has read the arguments")
	}
}

// kill ends the connections of this sshd, as a network does.
func (h *farHost) kill(t *testing.T) {
	t.Helper()
	for _, pid := range h.serving(t) {
		for range 3 { // sh, setpriv and the like are gone by exec; then sshd's process of the session
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil {
				t.Fatal(err)
			}
			pid, _ = strconv.Atoi(regexp.MustCompile(`PPid:\s+(\d+)`).FindStringSubmatch(string(raw))[1])
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "sshd\n" {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
		}
	}
	t.Error("there is no session to end")
}

// TestFarErrors: what is wrong before anything runs.
func TestFarErrors(t *testing.T) {
	h := newFarHost(t, false)
	dir := farStudy(t, 3)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "--host", "root@db1", "far.yaml"}, exitUsage, "write ssh://USER@MACHINE"},
		{[]string{"run", "--host", h.url, "--on", "model", "far.yaml"}, exitUsage, "--host excludes --on and --data"},
		{[]string{"weigh", "--host", h.url, "--", "a | b"}, exitUsage, "--shell"},
		{[]string{"weigh", "--host", fmt.Sprintf("ssh://127.0.0.1:%d", freePort(t)), "--", "true"}, exitHost, "cannot reach 127.0.0.1: ssh has ended; does `ssh -p "},
	} {
		if out, code := h.tare(t, dir, c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("tare %q: exit code %d, want %d with %s\n%s", c.args, code, c.code, c.want, out)
		}
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
