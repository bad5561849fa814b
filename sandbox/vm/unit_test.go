package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"tare/host/network"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/vm/boot"
	"tare/sizing"
)

func TestRoles(t *testing.T) {
	qemu := []string{"/usr/bin/qemu-system-x86_64", "-name", "x,debug-threads=on"}
	for _, c := range []struct {
		comm string
		args []string
		want record.ThreadRole
	}{
		// As seen with QEMU 7.2 on Linux 6.18.
		{"qemu-system-x86", qemu, record.RoleVMM},
		{"CPU 0/TCG", qemu, record.RoleVCPU},
		{"CPU 12/KVM", qemu, record.RoleVCPU},
		{"IO mon_iothread", qemu, record.RoleIOThread},
		{"IO io0", qemu, record.RoleIOThread},
		{"worker", qemu, record.RoleVMM},
		{"virtiofsd", []string{"/usr/lib/qemu/virtiofsd", "--fd=3"}, record.RoleVirtiofsd},
		{"pool", []string{"/usr/libexec/virtiofsd", "--fd=3"}, record.RoleVirtiofsd},
		{"vhost-1234", nil, record.RoleVhost},  // a kernel thread until Linux 6.3
		{"vhost-1234", qemu, record.RoleVhost}, // a thread of QEMU's since
	} {
		if got := ThreadRoles().Of(sandbox.Thread{Comm: c.comm, Args: c.args}); got != c.want {
			t.Errorf("%q of %q is %s, want %s", c.comm, c.args, got, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	k := New(Config{})
	for _, c := range []struct {
		name    string
		spec    sandbox.Spec
		options map[string]string
		host    int
		want    string // boot, plugged, memory at boot and plugged in MiB, queues, bound
		err     string
	}{
		{name: "default", host: 8, want: "1+0 2048+0 q1 of 8"},
		{name: "limits", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 2.5, MemoryLimit: 300 << 20}}, host: 8, want: "1+3 2048+384 q1 of 8"},
		{name: "clamped", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 4}}, host: 2, want: "1+1 2048+0 q1 of 2"},
		{name: "all", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 4}}, options: map[string]string{paramVCPUs: all}, host: 2, want: "2+0 2048+0 q2 of 2"},
		{name: "-1", options: map[string]string{paramVCPUs: "-1"}, host: 3, want: "3+0 2048+0 q3 of 3"},
		{name: "bound above the host", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 4}}, options: map[string]string{paramMaxVCPUs: "8", paramVCPUs: "3"}, host: 2, want: "3+4 2048+0 q3 of 8"},
		{name: "queues", options: map[string]string{paramQueues: "4", paramMemory: "512"}, host: 2, want: "1+0 512+0 q4 of 2"},
		{name: "large host", host: 512, want: "1+0 2048+0 q1 of 240"},
		{name: "runtime-rs", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 2.5, MemoryLimit: 300 << 20}}, options: map[string]string{paramSizing: "rs", paramVCPUs: "2", paramMaxVCPUs: "2"}, host: 2, want: "3+0 332+0 q1 of 3"},
		{name: "its overhead", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 1, MemoryLimit: 300 << 20}}, options: map[string]string{paramSizing: "rs", paramOverCPU: "0", paramOverMem: "100", paramQueues: "2"}, host: 2, want: "1+0 400+0 q2 of 1"},
		{name: "its defaults", options: map[string]string{paramSizing: "rs", paramVCPUs: "2"}, host: 2, want: "2+0 2048+0 q1 of 2"},
		{name: "without memory", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 1}}, options: map[string]string{paramSizing: "rs"}, host: 2, err: "set a memory-limit"},
		{name: "with little", spec: sandbox.Spec{Want: sandbox.Want{MemoryLimit: 100 << 20}}, options: map[string]string{paramSizing: "rs"}, host: 2, err: "raise memory-limit"},
		{name: "too many", spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 240, MemoryLimit: 1 << 30}}, options: map[string]string{paramSizing: "rs"}, host: 2, err: "make 241 vCPUs"},
		{name: "none", options: map[string]string{paramVCPUs: "0"}, host: 2, err: "at least one vCPU"},
		{name: "little memory", options: map[string]string{paramMemory: "16"}, host: 2, err: "out of range"},
		{name: "unknown", options: map[string]string{"vcpus": "1"}, host: 2, err: "there is no parameter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Options = c.options
			o, err := k.read(c.spec, c.host)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want it to say %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d+%d %d+%d q%d of %d", o.size.VCPUsBoot, o.size.VCPUsHotplugged, o.size.MemoryBoot>>20, o.plug>>20, o.queues, o.bound)
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	file := func() *os.File { return os.Stdin } // its number is the place in the list
	h := &hardware{
		name: "s", accel: accelTCG, files: boot.Files{Kernel: "/k", Initramfs: "/i"}, vcpus: 2, maxVCPUs: 4, memory: 512 << 20, maxMemory: 640 << 20,
		shared: true, qmp: file(), agent: file(), console: file(), shares: []*share{{tag: tagRoot, qemu: file()}},
		disks: []disk{{serial: "data", path: `/d, "x"`}, {serial: "root", path: "/u", over: "/image"}},
		tap:   &network.TapLink{Files: []*os.File{file(), file()}, MAC: []byte{2, 0, 0, 0, 0, 1}}, vhost: []*os.File{file(), file()},
		incoming: file(), args: []string{"-cpu", "host,-pmu"},
	}
	l := h.line()
	got := strings.Join(l.args, "\n")
	for _, want := range []string{
		"-machine\nq35,accel=tcg,", "-cpu\nmax\n", "-smp\n2,sockets=4,cores=1,threads=1,maxcpus=4",
		"memory-backend-memfd,id=mem0,size=512M,share=on", "-m\nsize=512M,slots=1,maxmem=640M",
		"socket,id=monitor,fd=3", "socket,id=console,fd=4", "socket,id=agent,fd=5", "socket,id=root,fd=6",
		"tap,id=net0,fds=7:8,vhost=on,vhostfds=9:10", "mac=02:00:00:00:00:01,mq=on,vectors=6", "-incoming\nfd:11",
		`"filename":"/d, \"x\""`, `"backing":{"driver":"raw","file":{"driver":"file","filename":"/image"},"read-only":true}`,
		"mitigations=off",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := len(l.args); l.args[n-2] != "-cpu" || l.args[n-1] != "host,-pmu" {
		t.Errorf("the study's own arguments are not the last: %q", l.args)
	}
	if len(l.files) != 9 {
		t.Errorf("%d files", len(l.files))
	}
	plain := &hardware{accel: accelKVM, vcpus: 1, maxVCPUs: 1, memory: 256 << 20, maxMemory: 256 << 20, tap: &network.TapLink{Files: []*os.File{file()}}}
	got = strings.Join(plain.line().args, "\n")
	for _, never := range []string{"mitigations=off", "mq=on", "vhost", "maxmem", "incoming", "memfd"} {
		if strings.Contains(got, never) {
			t.Errorf("%q in\n%s", never, got)
		}
	}
	if !strings.Contains(got, "-cpu\nhost\n") {
		t.Error(got)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c) 2003-2022\n": "7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)",
		"QEMU emulator version 10.0.2\n": "10.0.2",
		"QEMU emulator version 6.2.0\n":  "6.2.0",
	} {
		if q, err := parseVersion(text); err != nil || q.version != want {
			t.Errorf("%q: %+v, %v", text, q, err)
		}
	}
	for text, want := range map[string]string{
		"QEMU emulator version 5.2.0\n": "too old", "QEMU emulator version 6.1.9\n": "too old", "": "neither QEMU's", "qemu-kvm: not found": "neither QEMU's",
	} {
		if _, err := parseVersion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\n")
	f.Add("QEMU emulator version 9999.9999")
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := parseVersion(text); err == nil && (q.major < oldestMajor || q.version == "" || strings.Contains(q.version, "\n")) {
			t.Errorf("%+v of %q", q, text)
		}
	})
}

func TestPrintable(t *testing.T) {
	text := "\x1b[2J\x1b[0;1mfirst\x1b[0m\r\n\r\n\x00\x07second\tword\nlong " + strings.Repeat("x", 500) + "\n\xff\xfe\n"
	got := printable(text)
	want := []string{"first", "second word", "long " + strings.Repeat("x", mostWidth-5) + "...", "?"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("[    3.861504] Kernel panic - not syncing: No working init found.\r\n\x1b[31mx")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range printable(text) {
			if l == "" || len(l) > mostWidth+3 || strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q of %q", l, text)
			}
		}
	})
}

func TestPick(t *testing.T) {
	at := func(socket int, path string) slot {
		return slot{Type: "max-x86_64-cpu", Props: map[string]int{"socket-id": socket, "core-id": 0}, Path: path}
	}
	slots := []slot{at(3, ""), at(2, ""), at(1, ""), at(0, "/machine/unattached/device[0]")}
	got, err := pick(slots, 2)
	if err != nil || len(got) != 2 || got[0].Props["socket-id"] != 1 || got[1].Props["socket-id"] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := pick(slots, 4); err == nil || !strings.Contains(err.Error(), "3 free slots") {
		t.Error(err)
	}
	if _, err := pick([]slot{{Props: map[string]int{"driver": 1}, Type: "x"}}, 1); err == nil {
		t.Error("a driver was taken for a place")
	}
}

// TestCacheIsBounded: what was used last stays, what a killed process left goes.
func TestCacheIsBounded(t *testing.T) {
	dir := t.TempDir()
	c := folder{dir: dir, most: 64 << 10}
	write := func(bytes int) func(string) error {
		return func(path string) error { return os.WriteFile(path, make([]byte, bytes), 0o600) }
	}
	made := 0
	for range 2 {
		path, err := c.get(t.Context(), "a", func(path string) error { made++; return write(60 << 10)(path) })
		if err != nil || filepath.Base(path) != "a" {
			t.Fatal(path, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(filepath.Join(dir, "a"), old, old), write(1)(filepath.Join(dir, partly+"x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.get(t.Context(), "b", write(60<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.get(t.Context(), "c", func(string) error { return errors.New("no luck") }); err == nil {
		t.Error("one that cannot be made is there")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, e := range entries {
		left[e.Name()] = true
	}
	if want := []string{"b", "lock"}; !slices.Equal(slices.Sorted(maps.Keys(left)), want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unlock, err := lock(t.Context(), filepath.Join(dir, lockFile), "d")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := c.get(ctx, "d", write(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for another process: %v", err)
	}
}

func TestReadVerdict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "accelerator.json")
	want := verdict{Boot: "b", QEMU: "7.2", Guest: "6.1", Accel: accelTCG, Why: "no"}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	if got, ok := readVerdict(path); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, bad := range []string{"", "{", `{"accelerator": "hvf"}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if v, ok := readVerdict(path); ok {
			t.Errorf("%q is taken for %+v", bad, v)
		}
	}
}

// TestTakes: the slower is expected where nothing is known.
func TestTakes(t *testing.T) {
	k := New(Config{CacheDir: t.TempDir()})
	takes := func(accel, start string) time.Duration {
		return k.Traits(map[string]string{paramAccel: accel, paramStart: start, paramRootfs: rootBlock}).Takes
	}
	if unknown := takes(auto, startBoot); unknown != takes(accelTCG, startBoot) || unknown <= takes(accelKVM, startBoot) {
		t.Errorf("unknown: %v", unknown)
	}
	if err := (verdict{Accel: accelKVM}).write(filepath.Join(k.cfg.CacheDir, verdictFile)); err != nil {
		t.Fatal(err)
	}
	if found := takes(auto, startBoot); found != takes(accelKVM, startBoot) {
		t.Errorf("KVM works: %v", found)
	}
	if took := takes(accelTCG, startSnapshot); took >= takes(accelTCG, startBoot) {
		t.Errorf("from a snapshot: %v", took)
	}
}

// TestOwnRoot: which machines have a root to write to, and which copy the whole image.
func TestOwnRoot(t *testing.T) {
	for _, c := range []struct {
		rootfs, disk string
		own, copies  bool
	}{{rootBlock, auto, false, false}, {rootBlock, rootOverlay, true, false}, {rootBlock, rootCopy, true, true}, {rootVirtiofs, rootCopy, false, false}} {
		got := New(Config{}).Traits(map[string]string{paramRootfs: c.rootfs, paramRootDisk: c.disk})
		if got.OwnRoot != c.own || got.CopiesRoot != c.copies {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestDoubts: a CPU limit that the bound leaves without all of its vCPUs is told.
func TestDoubts(t *testing.T) {
	for _, c := range []struct {
		limit float64
		host  int
		bound string
		want  bool
	}{{4, 2, "0", true}, {4, 2, "5", false}, {0, 2, "0", false}, {0.5, 2, "0", false}} {
		spec := sandbox.Spec{Want: sandbox.Want{CPULimit: c.limit, Options: map[string]string{paramMaxVCPUs: c.bound}}}
		o, err := kind(t).read(spec, c.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&instance{spec: spec, o: o}).Doubts(); (len(got) == 1) != c.want {
			t.Errorf("limit %g on %d processors, max_vcpus %s: %+v", c.limit, c.host, c.bound, got)
		}
	}
}

// TestCheckRoom: several machines at once want the memory of all; one is tried as ever.
func TestCheckRoom(t *testing.T) {
	small, large := &options{size: sizing.Size{MemoryBoot: 1 << 10}}, &options{size: sizing.Size{MemoryBoot: 1 << 50}}
	for _, err := range []error{small.checkRoom(64), large.checkRoom(1)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := large.checkRoom(2); err == nil || !strings.Contains(err.Error(), "2 machines with 1024TiB each do not fit") {
		t.Error(err)
	}
}
