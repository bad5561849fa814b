package held

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadAgain(t *testing.T) {
	for name, n := range map[string]int{"held": 1, "not held": 0} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			write(t, path, "one")
			b := NewBudget(n)
			f, err := Open(path, b)
			if err != nil {
				t.Fatal(err)
			}
			if f.Held() != (n > 0) || b.Left() != 0 {
				t.Errorf("held %v with a budget of %d, %d left", f.Held(), n, b.Left())
			}
			buf := make([]byte, 4)
			for _, want := range []string{"one", "a longer text than the buffer", ""} {
				write(t, path, want)
				got, err := f.Read(&buf)
				if err != nil || string(got) != want || got == nil {
					t.Errorf("Read = %q, %v; want %q", got, err, want)
				}
			}
			for range 2 {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			if b.Left() != n {
				t.Errorf("%d left of %d after Close", b.Left(), n)
			}
		})
	}
}

func TestOpenMissing(t *testing.T) {
	b := NewBudget(1)
	if _, err := Open(filepath.Join(t.TempDir(), "none"), b); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v is not fs.ErrNotExist", err)
	}
	if b.Left() != 1 {
		t.Error("a failed Open took from the budget")
	}
}

func TestReadBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, strings.Repeat("x", maxFile+1))
	f, err := Open(path, NewBudget(1))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var buf []byte
	if _, err := f.Read(&buf); !errors.Is(err, io.ErrShortBuffer) {
		t.Errorf("a file over 1 MiB gives %v", err)
	}
}

func TestReadDoesNotAllocate(t *testing.T) {
	f, err := Open("/proc/self/stat", NewBudget(1))
	if err != nil {
		t.Skipf("no proc file system: %v", err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := f.Read(&buf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a Read", n)
	}
}

func TestMeter(t *testing.T) {
	var m Meter
	m.Start()
	for end := Monotonic() + 20*time.Millisecond; Monotonic() < end; {
	}
	m.Stop()
	first := m.Seconds()
	time.Sleep(20 * time.Millisecond) // outside: not counted
	m.Start()
	m.Stop()
	if first <= 0 || first > 5 || m.Seconds() < first || m.Seconds() > first+0.01 {
		t.Errorf("first stretch %v s, in all %v s", first, m.Seconds())
	}
}

func TestUint(t *testing.T) {
	for in, want := range map[string]struct {
		n    uint64
		rest string
		ok   bool
	}{
		"17634653 11315288 61\n": {17634653, " 11315288 61\n", true},
		" \t7x":                  {7, "x", true},
		"18446744073709551615":   {1<<64 - 1, "", true},
		"18446744073709551616":   {0, "18446744073709551616", false},
		"max":                    {0, "max", false},
		"-1":                     {0, "-1", false},
		"":                       {0, "", false},
	} {
		n, rest, ok := Uint([]byte(in))
		if ok != want.ok || ok && (n != want.n || string(rest) != want.rest) {
			t.Errorf("Uint(%q) = %d, %q, %v", in, n, rest, ok)
		}
	}
}

func TestValue(t *testing.T) {
	text := []byte("usage_usec 1\nuser_usec 2\nuser 3\nMemTotal:       24684092 kB\nlast 4")
	for key, want := range map[string]uint64{"usage_usec": 1, "user_usec": 2, "user": 3, "MemTotal": 24684092, "last": 4} {
		if n, ok := Value(text, key); !ok || n != want {
			t.Errorf("Value(%q) = %d, %v; want %d", key, n, ok, want)
		}
	}
	for _, key := range []string{"usage", "use", "none", "last 4"} {
		if n, ok := Value(text, key); ok {
			t.Errorf("Value(%q) = %d, though there is no such line", key, n)
		}
	}
}

func TestPressure(t *testing.T) {
	text := []byte("some avg10=0.13 avg60=0.85 avg300=1.74 total=50670223\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
	for level, want := range map[string]uint64{"some": 50670223, "full": 7} {
		if n, ok := Pressure(text, level); !ok || n != want {
			t.Errorf("Pressure(%q) = %d, %v; want %d", level, n, ok, want)
		}
	}
	for _, bad := range []string{"", "some", "some total=", "some total=x", "full avg10=0 total=5"} {
		if n, ok := Pressure([]byte(bad), "some"); ok {
			t.Errorf("Pressure(%q) = %d", bad, n)
		}
	}
}

// FuzzParse: no input makes a parser fail hard, read past the end, or find a
// number in a text without digits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"17634653 11315288 61\n",
		"some avg10=0.13 avg60=0.85 avg300=1.74 total=50670223\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"usage_usec 200277423\nuser_usec 155765539\nsystem_usec 44511883\nnice_usec 0\n",
		"MemTotal:       24684092 kB\nMemFree:        24269432 kB\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		_, rest, ok := Uint(b)
		if len(rest) > len(b) || ok && len(rest) == len(b) {
			t.Errorf("Uint(%q): rest %q", b, rest)
		}
		found := false
		for _, level := range []string{"some", "full"} {
			_, ok := Pressure(b, level)
			found = found || ok
		}
		for _, key := range []string{"usage_usec", "MemTotal"} {
			_, ok := Value(b, key)
			found = found || ok
		}
		if found && !bytes.ContainsAny(b, "0123456789") {
			t.Errorf("a number in %q", b)
		}
		if !bytes.Equal(b, before) {
			t.Error("the input was changed")
		}
	})
}
