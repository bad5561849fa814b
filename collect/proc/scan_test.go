package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tare/collect"
	"tare/collect/internal/taskiter"
	"tare/record"
	"tare/sandbox"
)

// scanned is a probe with an iterator that was never loaded: tests hand it the
// records themselves.
func scanned(t *testing.T, pids ...int) *probe {
	t.Helper()
	w := newWorld(t)
	o := NewWith(Options{Root: w.root, Now: func() time.Duration { return w.now }}).o
	p := &probe{
		o: o, tasks: &taskiter.Iter{}, threads: map[threadID]*thread{}, procs: map[int]*process{}, sums: map[sumKey]*sum{},
		listed: map[record.Labels]*listing{}, claimed: map[int]bool{}, scopes: []sandbox.LocalScope{{Roles: byComm()}},
	}
	for _, pid := range pids {
		w.file(fmt.Sprintf("%d/cmdline", pid), "x\x00")
		p.follow(pid, 0, nil)
	}
	return p
}

func full(pid, tid int, comm string, run, start, begun uint64) taskiter.Record {
	r := taskiter.Record{Pid: pid, Tid: tid, Run: run, Start: start, Begun: begun}
	copy(r.Comm[:], comm)
	return r
}

func same(pid, tid int) taskiter.Record { return taskiter.Record{Same: true, Pid: pid, Tid: tid} }

// walk merges the records of a walk of everything.
func walk(p *probe, rs ...taskiter.Record) {
	p.scans++
	if !p.merge(rs) {
		p.retireUnseen()
	}
}

func wantSum(t *testing.T, p *probe, role record.ThreadRole, run uint64, live int) {
	t.Helper()
	s := p.sumOf(sumKey{role, ""})
	if s.run != run || s.live != live {
		t.Errorf("role %s: %d ns and %d threads, want %d and %d", role, s.run, s.live, run, live)
	}
	n := 0
	for _, pr := range p.procs {
		n += len(pr.threads)
		if len(pr.tids) != len(pr.threads) || len(pr.seen) != len(pr.threads) || pr.live != len(pr.threads) {
			t.Errorf("lists of %d, %d, %d, live %d", len(pr.threads), len(pr.tids), len(pr.seen), pr.live)
		}
		for i, th := range pr.threads {
			if th.gone || th.id.tid != pr.tids[i] || i > 0 && pr.tids[i] <= pr.tids[i-1] {
				t.Errorf("thread %d at %d of %v, gone %v", th.id.tid, i, pr.tids, th.gone)
			}
		}
	}
	if n != len(p.order) {
		t.Errorf("%d threads in order, %d in processes", len(p.order), n)
	}
}

func TestMerge(t *testing.T) {
	const w = record.RoleWorkload
	p := scanned(t, 10, 20)
	walk(p, full(10, 10, "a", 100, 1, 1), full(20, 20, "b", 10, 2, 2), full(10, 30, "a", 5, 3, 1), full(99, 99, "other", 1, 1, 1))
	wantSum(t, p, w, 115, 3)
	walk(p, same(10, 10), full(10, 25, "new", 7, 4, 1), full(20, 20, "b", 12, 2, 2), same(10, 30), same(10, 30))
	wantSum(t, p, w, 124, 4)
	walk(p, same(10, 10), same(10, 25)) // two ended: what they used stays
	wantSum(t, p, w, 124, 2)
	walk(p, same(10, 10), full(10, 25, "again", 3, 5, 1)) // the number is another thread's
	wantSum(t, p, w, 127, 2)
	walk(p, same(10, 10), same(10, 25), same(10, 40)) // unknown, and without figures: waits
	wantSum(t, p, w, 127, 2)
	walk(p, same(10, 10), same(10, 25), full(10, 40, "c", 1, 6, 1))
	wantSum(t, p, w, 128, 3)
	walk(p, full(10, 10, "z", 9, 50, 50), same(10, 25)) // process 10 is another by now
	wantSum(t, p, w, 128, 0)
	p.follow(10, 0, nil)
	walk(p, full(10, 10, "z", 9, 50, 50))
	wantSum(t, p, w, 137, 1)
}

// TestMergeOutOfOrder: numbers came around, so a younger thread has a lower one.
func TestMergeOutOfOrder(t *testing.T) {
	p := scanned(t, 500)
	walk(p, full(500, 500, "a", 1, 1, 1), full(500, 900, "b", 2, 2, 1), full(500, 3, "c", 4, 3, 1), full(500, 700, "d", 8, 4, 1))
	wantSum(t, p, record.RoleWorkload, 15, 4)
	walk(p, same(500, 500), same(500, 900), full(500, 3, "c", 5, 3, 1), same(500, 700))
	wantSum(t, p, record.RoleWorkload, 16, 4)
}

// TestPartWalkRetiresNobody: a walk of one process can end early.
func TestPartWalkRetiresNobody(t *testing.T) {
	p := scanned(t, 10)
	walk(p, full(10, 10, "a", 100, 1, 1), full(10, 11, "a", 10, 2, 1))
	p.scans++
	if p.merge([]taskiter.Record{full(10, 10, "CPU 0/KVM", 110, 1, 1)}) {
		t.Error("nothing is missed")
	}
	wantSum(t, p, record.RoleVCPU, 10, 1)
	// The walk of everything, in the same reading.
	if !p.merge([]taskiter.Record{full(10, 10, "CPU 0/KVM", 111, 1, 1), same(10, 11)}) {
		t.Error("all were met")
	}
	wantSum(t, p, record.RoleVCPU, 11, 1)
	wantSum(t, p, record.RoleWorkload, 110, 1)
}

// TestMergeIsBounded: more threads than are followed.
func TestMergeIsBounded(t *testing.T) {
	p := scanned(t, 1)
	rs := make([]taskiter.Record, maxThreads+100)
	for i := range rs {
		rs[i] = full(1, i+1, "t", 1, 1, 1)
	}
	walk(p, rs...)
	wantSum(t, p, record.RoleWorkload, maxThreads, maxThreads)
}

// TestBothWaysAgree reads a busy process in both ways in turn. Readings of one
// way lie around those of the other, and so do their figures, to the nanosecond.
func TestBothWaysAgree(t *testing.T) {
	needBPF(t)
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	open := func(w Way) collect.Probe {
		p, err := NewWith(Options{Way: w, Self: -1}).Open(context.Background(), []sandbox.LocalScope{{Pids: []int{cmd.Process.Pid}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	bpf, files := open(BPF), open(Files)
	used := func(p collect.Probe) float64 {
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got {
			if s.Labels == "role=workload" && s.Name == CPUTime {
				return s.Value
			}
		}
		t.Fatal("the process was not found")
		return 0
	}
	before0, b0, after0 := used(files), used(bpf), used(files)
	for range 10 {
		time.Sleep(50 * time.Millisecond)
		before, b, after := used(files), used(bpf), used(files)
		const rounding = 1e-9
		if rose := b - b0; rose < before-after0-rounding || rose > after-before0+rounding {
			t.Errorf("BPF %.9f s, /proc %.9f to %.9f", rose, before-after0, after-before0)
		}
	}
	if used(bpf) == b0 {
		t.Error("a busy process used nothing")
	}
}

// TestExecOnHost: a process plays its new role soon after exec.
func TestExecOnHost(t *testing.T) {
	for _, way := range []Way{BPF, Files} {
		t.Run(string(way), func(t *testing.T) {
			if way == BPF {
				needBPF(t)
			}
			cmd := exec.Command("sh", "-c", `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read go; exec cat`)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
			roles := sandbox.ThreadRoles{{Role: "sh+sh", Comm: "sh", Program: "sh"}, {Role: "cat+cat", Comm: "cat", Program: "cat"}}
			p, err := NewWith(Options{Way: way, Self: -1}).Open(context.Background(), []sandbox.LocalScope{{Pids: []int{cmd.Process.Pid}, Roles: roles}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			lines := bufio.NewReader(out)
			if s, err := lines.ReadString('\n'); s != "done\n" {
				t.Fatal(s, err)
			}
			shell := read(t, p)
			if shell["threads{role=sh+sh}"] != 1 || shell["cpu_time{role=sh+sh}"] == 0 {
				t.Fatalf("before exec: %v", shell)
			}
			if _, err := in.Write([]byte("go\nback\n")); err != nil {
				t.Fatal(err)
			}
			if s, err := lines.ReadString('\n'); s != "back\n" {
				t.Fatal(s, err)
			}
			cat := read(t, p)
			// Where a search is not cheap, the files of /proc are searched once a second.
			for end := time.Now().Add(time.Minute); cat["threads{role=cat+cat}"] != 1 && time.Now().Before(end); cat = read(t, p) {
				time.Sleep(10 * time.Millisecond)
			}
			if cat["threads{role=sh+sh}"] != 0 || cat["threads{role=cat+cat}"] != 1 {
				t.Errorf("after exec: %v", cat)
			}
			// The shell ran a little longer: it read a line and called exec.
			if a, b := shell["cpu_time{role=sh+sh}"], cat["cpu_time{role=sh+sh}"]; b < a || b > a+a/5+1 {
				t.Errorf("the shell used %d ms, after its end %d ms", a, b)
			}
		})
	}
}

func TestSource(t *testing.T) {
	if got := NewWith(Options{Way: Files}).Source(); !strings.HasPrefix(got, "files of /proc: ") {
		t.Error(got)
	}
	w := newWorld(t)
	if got := w.open(Options{}).(collect.Sourced).Source(); !strings.Contains(got, w.root) {
		t.Error(got)
	}
	if _, err := NewWith(Options{Root: w.root, Way: BPF}).Open(context.Background(), nil); err == nil {
		t.Error("BPF on a proc file system that is not the kernel's")
	}
	needBPF(t)
	if got := New().Source(); got != "BPF task iterator" {
		t.Error(got)
	}
	n := func() int { d, _ := os.ReadDir("/proc/self/fd"); return len(d) }
	before := n()
	New().Source()
	if after := n(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestCrowd(t *testing.T) {
	for in, want := range map[string]int{"0.20 0.18 0.12 1/80 11206\n": 80, "": 0, "1/": 0, "0 0 0 1/99999999999 1": 1 << 22} {
		if got := crowd([]byte(in)); got != want {
			t.Errorf("crowd(%q) = %d, want %d", in, got, want)
		}
	}
}
