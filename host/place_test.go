package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/host/ext4"
	"tare/host/loop"
	"tare/host/setting"
	"tare/record"
	"tare/sandbox"
	"tare/trial"
	"tare/volume"
)

func place(t *testing.T) *Place {
	t.Helper()
	return &Place{State: t.TempDir(), Data: t.TempDir(), Memory: t.TempDir(), Root: "/tree", Images: map[string]Image{
		"nginx": {Root: "/nginx"}, "hello": {Image: trial.Image{Problem: "it has no command"}}, "redis": {Missing: "no package redis; run apt-get update"},
	}, MissingTools: []string{"wrk"}}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	for want, d := range map[string]trial.Demand{
		"":                                      {Tools: []string{"sh"}, Image: "nginx", Volumes: volume.AtData(volume.Memory), CPUs: "0"},
		"wrk is not installed; apt-get install": {Tools: []string{"wrk"}},
		"image redis: no package redis; run apt-get update":             {Image: "redis"},
		"image hello: it has no command":                                {Image: "hello", Own: true},
		"image squid was not prepared":                                  {Image: "squid"},
		"cpus 0,4095: this host has the processors 0-":                  {CPUs: "0,4095"},
		"cannot mount /no-such at /given: stat /no-such: no such file":  {Volumes: []volume.Volume{{Name: "x", Medium: volume.Bind, Host: "/no-such", At: "/given"}}},
		"cannot mount /etc/passwd at /volumes/x: it is not a directory": {Volumes: []volume.Volume{{Name: "x", Medium: volume.Bind, Host: "/etc/passwd"}}},
	} {
		err := place(t).Check(d)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", d, err, want)
		}
	}
	p := place(t)
	p.Memory = ""
	if err := p.Check(trial.Demand{Volumes: volume.AtData(volume.Memory)}); err == nil || !strings.Contains(err.Error(), "mount one on /dev/shm") {
		t.Errorf("data in memory without a memory file system: %v", err)
	}
}

// TestPrepareAndRelease: the sandboxes of a role share its volumes, and nothing else. Release
// leaves nothing of its trial, and all of the others.
func TestPrepareAndRelease(t *testing.T) {
	p := place(t)
	want := sandbox.Want{Trial: "t-1", Role: "main", Name: "t-1-main-0", Writable: true, Volumes: volume.AtData(volume.Memory), Image: "nginx", CPULimit: 2}
	a, err := p.Prepare(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	want.Name = "t-1-main-1"
	b, err := p.Prepare(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	if a.Mounts[0].Source != b.Mounts[0].Source || !strings.HasPrefix(a.Mounts[0].Source, p.Memory+"/") {
		t.Errorf("data %+v and %+v, want one below %s", a.Mounts, b.Mounts, p.Memory)
	}
	if a.Upper == b.Upper || !strings.HasPrefix(a.Upper, p.Data+"/") || a.Dir == b.Dir || a.Upper == a.Mounts[0].Source {
		t.Errorf("not apart: %+v, %+v", a, b)
	}
	if a.Root != "/nginx" || a.CPULimit != 2 {
		t.Errorf("%+v", a)
	}
	for _, dir := range []string{a.Dir, a.Mounts[0].Source, a.Upper, b.Dir, b.Upper} {
		if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	other, err := p.Prepare(t.Context(), sandbox.Want{Trial: "t-10", Role: "main", Name: "t-10-main"})
	if err != nil {
		t.Fatal(err)
	}
	if left := p.Release(t.Context(), "t-1"); len(left) > 0 {
		t.Error(left)
	}
	for _, base := range []string{p.State, p.Data, p.Memory} {
		if _, err := os.Stat(filepath.Join(base, "t-1")); !os.IsNotExist(err) {
			t.Errorf("left below %s: %v", base, err)
		}
	}
	if _, err := os.Stat(other.Dir); err != nil {
		t.Error("another trial lost its directory")
	}
	if _, err := p.Prepare(t.Context(), sandbox.Want{Trial: "t-2", Role: "main", Name: "t-2-main", Networked: true}); err == nil || !strings.Contains(err.Error(), "run as root") {
		t.Errorf("a network without a bridge: %v", err)
	}
}

// TestReleaseGivesSettingsBack: of a trial, and of the next one that has none.
func TestReleaseGivesSettingsBack(t *testing.T) {
	p := place(t)
	root := t.TempDir()
	p.Settings = setting.Table{Root: root, Record: filepath.Join(root, setting.RecordName)}
	file := filepath.Join(root, "/sys/kernel/debug/sched/migration_cost_ns")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("500000\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) != want {
			t.Errorf("it is %q, %v, want %s", b, err, want)
		}
	}
	levels := map[string]string{record.SettingMigrationCost: "5ms"}
	for _, end := range []func() error{
		func() error { return errors.Join(p.Release(t.Context(), "t-1")...) },
		func() error { _, err := p.Set(nil); return err },
	} {
		if facts, err := p.Set(levels); err != nil || facts[record.SettingMigrationCost] != "migration_cost_ns 5000000" {
			t.Fatalf("%v, %v", facts, err)
		}
		is("5000000")
		if err := end(); err != nil {
			t.Error(err)
		}
		is("500000")
	}
	if err := p.Check(trial.Demand{Settings: map[string]string{record.SettingARPLimit: "64"}}); err == nil || !strings.Contains(err.Error(), "there is no net.ipv4") {
		t.Errorf("a setting that is not there: %v", err)
	}
}

// readOnly makes a device read-only, or writable again: BLKROSET, blockdev(8).
func readOnly(t *testing.T, device string, on bool) {
	t.Helper()
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if on {
		n = 1
	}
	if err := errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), unix.BLKROSET, n), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestContents: what blkid finds is said in words.
func TestContents(t *testing.T) {
	for export, want := range map[string]string{
		"DEVNAME=/dev/sdb\nLABEL=my\\ data\nUUID=1-2\nBLOCK_SIZE=4096\nTYPE=xfs\nUSAGE=filesystem\nVERSION=1\n": `a file system, xfs, with the label "my data" and the UUID 1-2`,
		"DEVNAME=/dev/sdb\nUUID=1-2\nTYPE=ext4\nUSAGE=filesystem\n":                                             "a file system, ext4, with the UUID 1-2",
		"DEVNAME=/dev/sdb\nUUID=1-2\nTYPE=crypto_LUKS\nUSAGE=crypto\n":                                          "an encrypted volume, crypto_LUKS, with the UUID 1-2",
		"DEVNAME=/dev/sdb\nUUID=1-2\nTYPE=LVM2_member\nUSAGE=raid\n":                                            "data of the type LVM2_member, with the UUID 1-2",
		"DEVNAME=/dev/sdb\nPTUUID=3-4\nPTTYPE=gpt\n":                                                            "a partition table, gpt, with the UUID 3-4",
		"DEVNAME=/dev/sdb\n": "data of an unknown kind",
	} {
		if got := contents(export); got != want {
			t.Errorf("%q: %s, want %s", export, got, want)
		}
	}
}

// TestGivenDevice: a device that holds something, or is in use, is refused before anything of it
// is lost.
func TestGivenDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has loop devices")
	}
	file := filepath.Join(t.TempDir(), "disk.raw")
	if err := ext4.Make(t.Context(), file, "", 16<<20); err != nil {
		t.Fatal(err)
	}
	d, err := loop.Attach(file, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	refused := func(v volume.Volume, why string) {
		t.Helper()
		v.Name, v.Medium = "data", volume.Device
		if err := place(t).Check(trial.Demand{Volumes: []volume.Volume{v}}); (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v, want %q", v, err, why)
		}
	}
	disk := volume.Volume{Mode: volume.Block, Device: d.Path}
	refused(disk, d.Path+" contains a file system, ext4, with the UUID ")
	told := disk
	told.Overwrite = "ext4 00000000-0000-0000-0000-000000000000"
	refused(told, "names something else; look what is on the device")
	out, err := exec.Command("blkid", "--probe", "--match-tag", "UUID", "--output", "value", d.Path).Output()
	if err != nil {
		t.Fatal(err)
	}
	told.Overwrite = "ext4 " + strings.TrimSpace(string(out))
	refused(told, "")
	refused(disk, "write overwrite: \""+told.Overwrite+"\" in the workload, or name another device")
	readOnly(t, d.Path, true)
	refused(told, "is read-only; make it writable")
	readOnly(t, d.Path, false)
	refused(volume.Volume{Device: d.Path}, "use it as a block volume")
	refused(volume.Volume{Mode: volume.Block, Device: file}, "is not a block device")
	refused(volume.Volume{Mode: volume.Block, Device: "/dev/nothing"}, "there is no device /dev/nothing")
	at := t.TempDir()
	if err := unix.Mount(d.Path, at, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	refused(disk, d.Path+" is in use: "+d.Path+" is mounted on "+at+"; unmount it")
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	blank, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blank.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(blank.Sync(), blank.Close()); err != nil {
		t.Fatal(err)
	}
	refused(disk, "")
	disk.Size = 17 << 20
	refused(disk, "has 16MiB, and the workload needs 17MiB; set a smaller size")
}

// TestAnotherDisk: a device whose name belongs to another disk, in the middle of a study, is refused, and nothing of that
// disk is lost.
func TestAnotherDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has loop devices")
	}
	var files []string
	for _, name := range []string{"first.raw", "second.raw"} {
		files = append(files, filepath.Join(t.TempDir(), name))
		if err := os.WriteFile(files[len(files)-1], make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := loop.Attach(files[0], false)
	if err != nil {
		t.Fatal(err)
	}
	p := place(t)
	v := volume.Volume{Name: "data", Mode: volume.Block, Medium: volume.Device, Device: d.Path}
	for range 2 {
		if err := p.Check(trial.Demand{Volumes: []volume.Volume{v}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	second, err := os.OpenFile(files[1], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	config := unix.LoopConfig{Fd: uint32(second.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	if err := unix.IoctlLoopConfigure(int(f.Fd()), &config); err != nil {
		t.Skip("another program has taken the device: ", err)
	}
	if _, err := p.Prepare(t.Context(), sandbox.Want{Trial: "t-1", Role: "main", Name: "t-1-main", Volumes: []volume.Volume{v}}); err == nil || !strings.Contains(err.Error(), d.Path+" is another disk than when the study began") {
		t.Errorf("%v", err)
	}
	if err := place(t).Check(trial.Demand{Volumes: []volume.Volume{v}}); err != nil {
		t.Errorf("a new study: %v", err)
	}
}

// TestNoImageIsPulled: a cold start is refused, and the message says what to write.
func TestNoImageIsPulled(t *testing.T) {
	if err := place(t).Check(trial.Demand{Cold: 2}); err == nil || !strings.Contains(err.Error(), "write image: warm") {
		t.Error(err)
	}
}

// TestDataThatVanishes: when the directory for data is gone, or another one has its name, no trial goes on in a new one.
func TestDataThatVanishes(t *testing.T) {
	p := place(t)
	p.Data = filepath.Join(t.TempDir(), "tare-t1")
	start := func(want sandbox.Want) error {
		want.Trial, want.Role, want.Name = "t1-1", "main", "t1-1-main"
		_, err := p.Prepare(t.Context(), want)
		return err
	}
	wants := map[string]sandbox.Want{"a volume": {Volumes: []volume.Volume{{Name: "data"}}}, "the root": {Writable: true}}
	for what, change := range map[string]func() error{
		"":            func() error { return nil },
		"is gone":     func() error { return os.Rename(p.Data, p.Data+"-gone") },
		"was swapped": func() error { return os.Mkdir(p.Data, 0o700) },
	} {
		_ = os.RemoveAll(p.Data)
		if err := os.Mkdir(p.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if p.data, err = os.Stat(p.Data); err != nil {
			t.Fatal(err)
		}
		if what == "was swapped" {
			err = os.Rename(p.Data, p.Data+"-old")
		}
		if err = errors.Join(err, change()); err != nil {
			t.Fatal(err)
		}
		for of, want := range wants {
			if err := start(want); errors.Is(err, sandbox.ErrNodeLost) != (what != "") || err != nil && !strings.Contains(err.Error(), filepath.Dir(p.Data)+", where the study has its data, was unmounted, moved or deleted") {
				t.Errorf("the directory %s, for %s: %v", what, of, err)
			}
		}
		if err := start(sandbox.Want{Volumes: []volume.Volume{{Name: "data", Medium: volume.Memory}}}); err != nil {
			t.Errorf("the directory %s, in memory: %v", what, err)
		}
		_, err = os.Stat(p.Data)
		if gone := errors.Is(err, os.ErrNotExist); gone != (what == "is gone") {
			t.Errorf("the directory %s: made again: %t", what, !gone)
		}
	}
}
