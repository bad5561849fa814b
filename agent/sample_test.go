package agent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tare/sandbox"
)

// read takes a reading from captured files, as the client gets it.
func read(t testing.TB, dir string) sandbox.GuestReading {
	t.Helper()
	s := &sampler{root: filepath.Join("testdata", dir)}
	got, err := s.read(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	reading, nano, err := parseSample(returnBody{Body: b})
	if err != nil || nano <= 0 || reading.Spent <= 0 {
		t.Fatalf("%v: %d, %v", err, nano, reading.Spent)
	}
	return reading
}

func numbers(r sandbox.GuestReading) []int {
	var out []int
	for i := range r.CPUs {
		out = append(out, r.CPUs[i].Number)
	}
	return out
}

func TestCapturedKernels(t *testing.T) {
	for dir, cpus := range map[string][]int{"two": {0, 1}, "four": {0, 1, 2, 3}, "gaps": {0, 2, 3}, "again": {0, 1, 2, 3}} {
		t.Run(dir, func(t *testing.T) {
			r := read(t, dir)
			if !slices.Equal(numbers(r), cpus) || r.Runnable < 1 || r.Memory < r.Free || r.Free <= 0 {
				t.Errorf("%v: %+v", numbers(r), r)
			}
			for _, c := range r.CPUs {
				if c.User < 0 || c.Idle <= 0 {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// TestColumnsAreOfTheirProcessor: where one is offline, /proc/stat has no line for it
// and /proc/softirqs has a column.
func TestColumnsAreOfTheirProcessor(t *testing.T) {
	const stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 9\ncpu2 10 0 0 40\nintr 5 1\nprocs_running 3\n"
	const soft = "                    CPU0       CPU1       CPU2\n          HI:          0          0          0\n" +
		"      NET_TX:          1          2          3\n      NET_RX:         10         20         30\n       BLOCK:        100        200        300\n"
	var b sampleBody
	if !parseStat([]byte(stat), &b) {
		t.Fatal("no processors")
	}
	parseSoftIRQs([]byte(soft), nil, b.CPUs)
	want := []sampleCPU{
		{Number: 0, Ticks: [nTicks]uint64{3, 3, 4, 5, 6, 7, 8}, SoftIRQs: [nSoftIRQ]uint64{1, 10, 100}},
		{Number: 2, Ticks: [nTicks]uint64{10, 0, 40}, SoftIRQs: [nSoftIRQ]uint64{3, 30, 300}},
	}
	if !slices.Equal(b.CPUs, want) || b.Runnable != 3 {
		t.Errorf("%+v, %d runnable; want %+v", b.CPUs, b.Runnable, want)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	s := &sampler{root: "/proc"}
	defer s.close()
	if _, err := s.read(nil); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(50, func() { _, _ = s.read(nil) }); n > 1 {
		t.Errorf("%v allocations a reading", n)
	}
}

func BenchmarkSample(b *testing.B) {
	s := &sampler{root: "/proc"}
	defer s.close()
	for b.Loop() {
		got, err := s.read(nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(got); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzKernelFiles(f *testing.F) {
	for _, dir := range []string{"two", "four", "gaps", "again"} {
		stat, err := os.ReadFile(filepath.Join("testdata", dir, "stat"))
		if err != nil {
			f.Fatal(err)
		}
		soft, err := os.ReadFile(filepath.Join("testdata", dir, "softirqs"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stat, soft)
	}
	f.Fuzz(func(t *testing.T, stat, soft []byte) {
		var b sampleBody
		if parseStat(stat, &b) != (len(b.CPUs) > 0) || len(b.CPUs) > maxCPUs {
			t.Fatalf("%d processors", len(b.CPUs))
		}
		parseSoftIRQs(soft, nil, b.CPUs)
		// What an agent says a client takes.
		raw, err := json.Marshal(&b)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := parseSample(returnBody{Body: raw})
		if err != nil || len(r.CPUs) != len(b.CPUs) {
			t.Fatalf("%v: %s", err, raw)
		}
	})
}

func FuzzSampleAnswer(f *testing.F) {
	f.Add([]byte(`{"at_ns":5,"spent_ns":1,"runnable":1,"memory":2,"free":1,"cpus":[{"n":0,"t":[1,2,3,4,5,6,7],"s":[1,2,3]},{"n":2,"t":[1]}]}`))
	f.Add([]byte(`{"cpus":[{"n":-1}]}`))
	f.Add(bytes.Repeat([]byte("["), 100))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, _, err := parseSample(returnBody{Body: body})
		if err != nil {
			return
		}
		if len(r.CPUs) > maxCPUs || r.Memory < 0 || r.Spent < 0 || !slices.IsSorted(numbers(r)) {
			t.Fatalf("%+v", r)
		}
	})
}
