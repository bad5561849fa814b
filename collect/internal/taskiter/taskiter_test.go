package taskiter

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

const childMode = "TASKITER_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "":
		os.Exit(m.Run())
	case "hold": // loads, says which program, and waits to be killed
		it, err := new(Loader).Load()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(programID(it))
		time.Sleep(time.Minute)
	case "namespace": // with a proc file system of its own namespace
		if err := errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
			fmt.Println("cannot mount:", err)
			return
		}
		fallthrough
	case "load":
		_, err := new(Loader).Load()
		fmt.Println(err)
	}
}

func load(t testing.TB) *Iter {
	t.Helper()
	it, err := new(Loader).Load()
	if err != nil {
		t.Skip("no BPF task iterator here: ", err)
	}
	t.Cleanup(func() {
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	})
	return it
}

func programID(it *Iter) ebpf.ProgramID {
	info, err := it.parts.Programs["tasks"].Info()
	if err != nil {
		return 0
	}
	id, _ := info.ID()
	return id
}

// threads starts n threads of this process that sleep until the test ends, each
// after it has used some CPU.
func threads(t testing.TB, n int) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	fd := int(r.Fd())
	for i := range n {
		go func() {
			runtime.LockOSThread()
			_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid()), fmt.Appendf(nil, "nap %d", i), 0)
			ready <- struct{}{}
			_, _ = unix.Read(fd, make([]byte, 1))
			done <- struct{}{}
		}()
	}
	for range n {
		<-ready
	}
	t.Cleanup(func() {
		_ = w.Close()
		for range n {
			<-done
		}
		_ = r.Close()
	})
}

// TestSameAsProc reads every thread of this process in both ways: what the
// iterator says lies between two readings of schedstat around it.
func TestSameAsProc(t *testing.T) {
	it := load(t)
	threads(t, 500)
	pid := os.Getpid()
	it.Add(pid)
	for name, scan := range map[string]func() ([]Record, error){
		"all": func() ([]Record, error) { return it.Scan(nil) },
		"one": func() ([]Record, error) { return it.ScanProcess(nil, pid) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "one" && !it.Narrow() {
				t.Skip("this kernel walks all threads only (before Linux 6.1)")
			}
			it.Forget()
			before := schedstats(t)
			got, err := scan()
			if err != nil {
				t.Fatal(err)
			}
			after := schedstats(t)
			naps := 0
			for _, r := range got {
				if r.Pid != pid {
					continue // of a process with the same bit
				}
				low, ok := before[r.Tid]
				high, still := after[r.Tid]
				if !ok || !still {
					continue // began or ended meanwhile
				}
				if r.Run < low[0] || r.Run > high[0] || r.Wait < low[1] || r.Wait > high[1] {
					t.Errorf("thread %d: BPF %d %d, /proc %v to %v", r.Tid, r.Run, r.Wait, low, high)
				}
				if comm := readComm(r.Tid); comm != Name(&r.Comm) {
					t.Errorf("thread %d is %q, /proc says %q", r.Tid, Name(&r.Comm), comm)
				}
				if strings.HasPrefix(Name(&r.Comm), "nap ") {
					naps++
				}
				delete(after, r.Tid)
			}
			for tid := range after {
				if _, ok := before[tid]; ok {
					t.Errorf("thread %d is in /proc and not told of", tid)
				}
			}
			if naps != 500 {
				t.Errorf("%d sleeping threads, want 500", naps)
			}
			// The sleeping ones are told of in short now, and in full after Forget.
			same := func() (n int) {
				got, err := scan()
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range got {
					if r.Same {
						n++
					}
				}
				return n
			}
			// On a busy machine some of them are still on their way to sleep.
			n := same()
			for end := time.Now().Add(30 * time.Second); n < 500 && time.Now().Before(end); n = same() {
				time.Sleep(10 * time.Millisecond)
			}
			if n < 500 {
				t.Errorf("%d threads have not run, want 500", n)
			}
			it.Forget()
			if n := same(); n > 0 {
				t.Errorf("%d are told of in short after Forget", n)
			}
			it.Clear()
			it.Forget()
			got, err = scan()
			for _, r := range got {
				if r.Pid == pid {
					t.Fatalf("this process is told of after Clear: %+v", r)
				}
			}
			if err != nil {
				t.Error(err)
			}
			it.Add(pid)
		})
	}
}

func schedstats(t *testing.T) map[int][2]uint64 {
	t.Helper()
	names, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[int][2]uint64{}
	for _, name := range names {
		tid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := own(tid); err == nil {
			out[tid] = v
		}
	}
	return out
}

func readComm(tid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/comm", tid))
	return strings.TrimSuffix(string(b), "\n")
}

// TestNothingStays: neither Close nor a kill leaves the program in the kernel,
// and a thousand of them leave no descriptor and no memory.
func TestNothingStays(t *testing.T) {
	it := load(t)
	id := programID(it)
	if id == 0 {
		t.Skip("this kernel gives programs no numbers")
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, id)

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"=hold")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	killed, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Errorf("the child said %q", line)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone(t, ebpf.ProgramID(killed))
}

func gone(t *testing.T, id ebpf.ProgramID) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the kernel frees a little later
		p, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err == nil {
			_ = p.Close()
		}
		if time.Now().After(end) {
			t.Fatalf("program %d is still loaded: %v", id, err)
		}
	}
}

func TestThousandLoads(t *testing.T) {
	load(t)
	var l Loader
	pid := os.Getpid()
	round := func(n int) (descriptors int, rss int64) {
		for range n {
			it, err := l.Load()
			if err != nil {
				t.Fatal(err)
			}
			it.Add(pid)
			if _, err := it.Scan(nil); err != nil {
				t.Fatal(err)
			}
			if err := it.Close(); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		pages, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
		return len(d), pages * int64(os.Getpagesize())
	}
	fds, before := round(50)
	for range 19 {
		after, rss := round(50)
		if after > fds {
			t.Fatalf("%d descriptors, %d before", after, fds)
		}
		if rss > before+16<<20 {
			t.Fatalf("the resident set grew from %d to %d MiB", before>>20, rss>>20)
		}
	}
}

// TestRefusals: where it cannot work, Load says why.
func TestRefusals(t *testing.T) {
	load(t)
	for name, c := range map[string]struct {
		mode  string
		flags uintptr
		want  string
	}{
		"no capability": {"load", unix.CLONE_NEWUSER, "CAP_BPF"},
		"namespace":     {"namespace", unix.CLONE_NEWPID | unix.CLONE_NEWNS, "PID namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := inNamespace(c.mode, c.flags)
			if err != nil || strings.HasPrefix(out, "cannot mount") {
				t.Skipf("this host makes no such namespace: %v %s", err, out)
			}
			if !strings.Contains(out, c.want) {
				t.Errorf("Load says %q, nothing of %s", out, c.want)
			}
		})
	}
}
