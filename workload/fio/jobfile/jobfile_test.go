package jobfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tare/workload/fio/jobfile"
)

func data() jobfile.Target { return jobfile.Target{Path: "/data"} }

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"BS": "4096", "TARGET": "/data", "mix": "70", "out": "../x"}[name]
	return v, ok
}

func read(text string, t jobfile.Target) (*jobfile.File, error) {
	f, err := jobfile.Parse(text, lookup)
	if err == nil {
		err = f.Check(t)
	}
	return f, err
}

// TestText: what fio reads has all options that describe the load, with their values, and none
// that shape the report.
func TestText(t *testing.T) {
	f, err := read("; two jobs\n[global]\nbs=${BS} # bytes\n size = 4m\ngroup_reporting\n[a]\nrw=randrw\nrwmixread=${mix}\nruntime=2\n\n[global]\ndirect=1\n[b 2]\nstonewall\nfilename=x:${TARGET}/y\nnumjobs=3\nfilename_format=$jobname.$filenum\n", data())
	if err != nil {
		t.Fatal(err)
	}
	const want = "[global]\ndirectory=/data\n[a]\nbs=4096\nsize=4m\nrw=randrw\nrwmixread=70\nruntime=2\n[b 2]\nbs=4096\nsize=4m\ndirect=1\nstonewall\nfilename=x:y\nnumjobs=3\nfilename_format=$jobname.$filenum\n"
	if got := f.Text("directory=/data"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	a, b := &f.Sections[0], &f.Sections[1]
	if _, run, timed := a.Times(); a.RW() != "randrw" || a.Jobs() != 1 || run != 2*time.Second || !timed {
		t.Errorf("%+v", a)
	}
	if _, _, timed := b.Times(); b.RW() != "read" || b.Jobs() != 3 || timed {
		t.Errorf("%+v", b)
	}
	if g := f.Groups(); len(g) != 2 {
		t.Errorf("groups %v", g)
	}
}

func TestGroups(t *testing.T) {
	for text, want := range map[string]int{
		"[a]\nsize=1m\n[b]\nsize=1m\n":                                   1,
		"[a]\nsize=1m\n[b]\nsize=1m\nstonewall\n":                        2,
		"[global]\nwait_for_previous=1\nsize=1m\n[a]\n[b]\n":             2,
		"[a]\nsize=1m\n[b]\nsize=1m\nstonewall=0\n":                      1,
		"[a]\nsize=1m\n[b]\nsize=1m\n[c]\nsize=1m\nstonewall\n":          2,
		"[a]\nsize=1m\n[b]\nsize=1m\nwait_for=a\n":                       2,
		"[global]\nsize=1m\nstonewall\n[a]\nnumjobs=4\n[b]\nstonewall=0": 1,
	} {
		f, err := read(text, data())
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := len(f.Groups()); got != want {
			t.Errorf("%q: %d groups, want %d", text, got, want)
		}
	}
}

// TestRefused: a mistake has its place, and nothing leads out of the target.
func TestRefused(t *testing.T) {
	device := jobfile.Target{Path: "/dev/data", Device: true}
	for _, c := range []struct {
		text         string
		t            jobfile.Target
		line, column int
		why          string
	}{
		{"", data(), 1, 1, "no section"},
		{"[global]\nbs=4k\n", data(), 1, 1, "no section"},
		{"bs=4k\n[a]\n", data(), 1, 1, "before the first section"},
		{"[a\n", data(), 1, 1, "not the name"},
		{"[a]\nsize=1m\n[A]\n", data(), 3, 2, "same names"},
		{"[../x]\nsize=1m\n", data(), 1, 2, "files are named after it"},
		{"[globalx]\nsize=1m\n", data(), 1, 2, "for [global]"},
		{"[a]\nrw=read\n", data(), 1, 1, "has no size"},
		{"[a]\nrw=read\nsize=0\n", data(), 3, 6, "size=0: the files of section a have no bytes"},
		{"[global]\nsize=0%\n[a]\n", data(), 2, 6, "have no bytes"},
		{"[a]\nsize=0x0k\nio_size=0\n", data(), 2, 6, "have no bytes"},
		{"[a]\nsize=1m\nbs=4k,0\n", data(), 3, 4, "fio refuses 0"},
		{"[a]\nsize=1m\niodepth=0\n", data(), 3, 9, "fio refuses 0"},
		{"[a]\n  bs=${BS}k${SIX}\n", data(), 2, 12, "nothing is called ${SIX}"},
		{"[a]\nnumjobs=$ncpus\n", data(), 2, 9, "only ${NAME}"},
		{"[a]\nsize=1m\nbs=$jobnum\n", data(), 3, 4, "only for filename_format"},
		{"[a]\ninclude other.fio\n", data(), 2, 1, "second file"},
		{"[a]\nexec_prerun=rm -rf /data\n", data(), 2, 1, "runs a program"},
		{"[a]\nexec_postrun=reboot\n", data(), 2, 1, "runs a program"},
		{"[a]\nwrite_bw_log=/etc/x\n", data(), 2, 1, "outside of the target"},
		{"[a]\nwrite_iolog=x\n", data(), 2, 1, "outside"},
		{"[a]\nioengine=external:/x.so\n", data(), 2, 10, "beyond the target"},
		{"[a]\nioengine=exec\n", data(), 2, 10, "beyond the target"},
		{"[a]\nioengine=net\n", data(), 2, 10, "beyond the target"},
		{"[a]\ndirectory=/etc\n", data(), 2, 11, "outside"},
		{"[a]\ndirectory=${TARGET}/${out}\n", data(), 2, 11, "outside"},
		{"[a]\nfilename=/etc/passwd\n", data(), 2, 10, "outside"},
		{"[a]\nfilename=x:../y\n", data(), 2, 10, "outside"},
		{"[a]\nfilename=${TARGET}/..\n", data(), 2, 10, "outside"},
		{"[a]\nfilename=${TARGET}/${TARGET}/x\n", data(), 2, 10, "outside"},
		{"[a]\nfilename=x\\:/y\n", data(), 2, 10, "outside"},
		{"[a]\nfilename=-\n", data(), 2, 10, "outside"},
		{"[a]\nfilename=/dev/sda\n", device, 2, 10, "not the target"},
		{"[a]\ndirectory=/data\n", device, 2, 11, "no directory"},
		{"[a]\nfilename_format=../$jobname\n", data(), 2, 17, "out of the target"},
		{"[a]\niomem=mmap:/etc/x\n", data(), 2, 7, "names a file"},
		{"[a]\nfill_device=1\n", data(), 2, 1, "until the disk is full"},
		{"[a]\nioscheduler=none\n", data(), 2, 1, "for everybody"},
		{"[a]\nrw=trim\n", data(), 2, 4, "no figures"},
		{"[a]\nnumjobs=1000\n", data(), 2, 9, "not a number from"},
		{"[a]\nsize=1m\nnumjobs=200\n[b]\nsize=1m\nnumjobs=100\n", data(), 4, 1, "300 jobs"},
		{"[a]\nruntime=soon\n", data(), 2, 9, "not a time"},
		{"[a]\niodept=4\n", data(), 2, 1, "no option \"iodept\""},
		{strings.Repeat("#\n", jobfile.MaxText), data(), 1, 1, "bytes"},
	} {
		_, err := read(c.text, c.t)
		var e *jobfile.Error
		if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column || !strings.Contains(e.What, c.why) || e.Instead == "" {
			t.Errorf("%.80q: %v, want line %d, column %d, %q", c.text, err, c.line, c.column, c.why)
		}
	}
}

// FuzzParse: an error has its place; what passes names no file outside of the target, and is read
// again as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"[global]\nbs=${BS}\nsize=1m\n[a]\nrw=rw:8\n[b]\nstonewall\nfilename=x:${TARGET}/y\n",
		"[a]\nsize=1m ; half\nfilename_format=$jobname\n", "[a]\nbs=$", "[a]\nbs=${", "[", "=", "[a]\n=x", "[a]\nexec_prerun=x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := read(text, data())
		if err != nil {
			var e *jobfile.Error
			if lines := strings.Split(text, "\n"); !errors.As(err, &e) || e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len(lines[e.Line-1])+1 {
				t.Errorf("%v", err)
			}
			return
		}
		out := file.Text()
		for line := range strings.Lines(out) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && (name == "filename" || name == "directory" || name == "filename_format") && value != "/data" && strings.Contains(value, "/") {
				t.Errorf("%q leads elsewhere", line)
			}
		}
		again, err := read(out, data())
		if err != nil || again.Text() != out {
			t.Errorf("%q is read again as %v, %v", out, again, err)
		}
	})
}
