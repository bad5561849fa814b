package procstat

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// statSamples are real lines: cp's own, and one of a program with parentheses
// and a space in its name.
func statSamples(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/stat.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestParse(t *testing.T) {
	var comms []string
	for _, line := range statSamples(t) {
		p, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		// Column 22 of a line without a space in its name.
		if f := strings.Fields(line); p.Name == "cp" && f[21] != "" && (p.Start == 0 || f[0] == "" || p.Parent == 0) {
			t.Errorf("%+v of %s", p, line)
		}
		comms = append(comms, p.Name)
	}
	if want := []string{"cp", "w-a) (b"}; !slices.Equal(comms, want) {
		t.Errorf("names %q, want %q", comms, want)
	}
	p, err := Read("/proc", os.Getpid())
	if err != nil || p.PID != os.Getpid() || p.Parent != os.Getppid() {
		t.Errorf("this process: %+v, %v", p, err)
	}
	for _, bad := range []string{"", "1", "1 (x", "1 (x) S 1", "x (y) " + strings.Repeat("1 ", 30)} {
		if p, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %+v", bad, p)
		}
	}
	// Of other lines, cut as here.
	for line, want := range map[string]uint64{
		"12 (etcd) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4711 100 200":    4711,
		"12 (a) b (c) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4712 100 200": 4712,
	} {
		if p, err := Parse(line); err != nil || p.Start != want {
			t.Errorf("%s: %+v, %v", line, p, err)
		}
	}
}

func TestEnded(t *testing.T) {
	for line, want := range map[string]bool{"1 (x) Z": true, "1 (x) S": false, "1 (x) X": true} {
		if p, err := Parse(line + strings.Repeat(" 1", 20)); err != nil || p.Ended != want {
			t.Errorf("%s: %+v, %v", line, p, err)
		}
	}
	if p, err := Parse("1 (x) Z" + strings.Repeat(" 2", 20)); err != nil || p.Ended {
		t.Errorf("other threads go on: %+v, %v", p, err)
	}
}

// Open gives nothing of a later process with the number.
func TestOpen(t *testing.T) {
	p, err := Read("/proc", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	fd, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	p.Start--
	if _, err := p.Open(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("another's start: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range statSamples(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if p, err := Parse(in); err == nil && !strings.Contains(in, "("+p.Name+")") {
			t.Errorf("name %q of %q", p.Name, in)
		}
	})
}
