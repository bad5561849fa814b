package jobfile_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"tare/workload/fio/jobfile"
)

// TestBytes: the files of all jobs together, in fio's units.
func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"[a]\nsize=4m\n":               4 << 20,
		"[a]\nsize=100t\n":             100 << 40,
		"[a]\nsize=9e99p\nnumjobs=2\n": 2 << 50,
		"[a]\nsize=0x1000\n":           4096,
		"[global]\nsize=1GiB\n[a]\nnumjobs=3\n[b]\nsize=1kb\n":        3<<30 + 1024,
		"[a]\nfilesize=1m-4m\nnrfiles=5\nnumjobs=2\n":                 40 << 20,
		"[a]\nsize=1g\nfilesize=2m\n":                                 2 << 20,
		"[a]\nfilename=x:y\nfilesize=2m\nnumjobs=4\n":                 4 << 20,
		"[global]\nfilename=x\n[a]\nsize=1m\n[b]\nsize=2m\noffset=1m": 3 << 20,
		"[a]\nfilename=x\nsize=1m\noffset_increment=1m\nnumjobs=4\n":  4 << 20,
		"[a]\nio_size=8m\n": 8 << 20,
		"[global]\nfilename=x\nsize=1m\n[a]\n[b]\nfilename=x:y\nsize=4m\n":              4 << 20,
		"[a]\nfilename_format=$jobname.$filenum\nsize=1m\nnumjobs=4\n[b]\nsize=1m\n":    2 << 20,
		"[global]\nfilename_format=x.$filenum\nsize=1m\nnumjobs=4\n[a]\n[b]\nsize=2m\n": 2 << 20,
		"[a]\nfilename_format=$jobname.$jobnum\nsize=1m\nnumjobs=4\n":                   4 << 20,
		"[a]\nsize=50%\n": 0,
	} {
		f, err := read(text, data())
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := f.Bytes(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestBytesOfMany: what thousands of files take is a number all the same.
func TestBytesOfMany(t *testing.T) {
	var names []string
	for i := range 9000 {
		names = append(names, strconv.Itoa(i))
	}
	f, err := read("[a]\nsize=1m\noffset=9e99p\nfilename="+strings.Join(names, ":")+"\n", data())
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Bytes(); got != jobfile.MaxJobs<<50 {
		t.Errorf("%d bytes", got)
	}
}

// TestBadNumber: what fio does not read, or reads as another number than it says, is refused where it stands.
func TestBadNumber(t *testing.T) {
	for _, o := range []string{"size=`touch x`4m", "size=(2*4k)", "size=4x", "size=1.5g", "size=-", "filesize=1m-x", "bs=x", "bs=4k,y", "offset=here", "iodepth=x", "nrfiles=a", "loops=2x", "rwmixread=xx", "io_size=2*4k"} {
		_, err := read("[a]\nsize=1m\n "+o+"\n", data())
		var e *jobfile.Error
		if !errors.As(err, &e) || e.Line != 3 || e.Column != strings.Index(o, "=")+3 || !strings.Contains(e.Instead, "write one such as") {
			t.Errorf("%s: %v", o, err)
		}
	}
	for _, o := range []string{"size=4MiB", "bs=4k-8k", "bs=4k,8k", "bsrange=4k-8k,16k-1m", "offset=50%", "size=10%", "offset=4z", "iodepth=1k", "filesize=1m:4m", "size=4B", "size=1e6", "size=0\nfilesize=1m", "offset=0", "io_size=0", "size=0x10"} {
		if _, err := read("[a]\nsize=1m\n"+o+"\n", data()); err != nil {
			t.Errorf("%s: %v", o, err)
		}
	}
}
