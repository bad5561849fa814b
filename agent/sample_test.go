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
	var got sampleBody
	if err := s.read(&got); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(samplesBody{[]sampleBody{got}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	readings, nanos, err := parseSamples(returnBody{Body: b}, 1)
	if err != nil || nanos[0] <= 0 || readings[0].Spent <= 0 {
		t.Fatalf("%v: %d, %v", err, nanos, readings)
	}
	return readings[0]
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
	var b sampleBody
	if err := s.read(&b); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(50, func() { _ = s.read(&b) }); n > 0 {
		t.Errorf("%v allocations a reading", n)
	}
}

func BenchmarkSample(b *testing.B) {
	s := &sampler{root: "/proc"}
	defer s.close()
	var got sampleBody
	for b.Loop() {
		if err := s.read(&got); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(&got); err != nil {
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
		if err != nil || len(raw) > maxSample/2 {
			t.Fatal(len(raw), err)
		}
		r, err := b.reading()
		if err != nil || len(r.CPUs) != len(b.CPUs) {
			t.Fatalf("%v: %s", err, raw)
		}
	})
}

func FuzzSampleAnswer(f *testing.F) {
	f.Add([]byte(`{"readings":[{"at_ns":5,"spent_ns":1,"runnable":1,"memory":2,"free":1,"cpus":[{"n":0,"t":[1,2,3,4,5,6,7],"s":[1,2,3]},{"n":2,"t":[1]}]},{"at_ns":6}]}`))
	f.Add([]byte(`{"readings":[{"cpus":[{"n":-1}]}]}`))
	f.Add(bytes.Repeat([]byte("["), 100))
	f.Fuzz(func(t *testing.T, body []byte) {
		readings, nanos, err := parseSamples(returnBody{Body: body}, 10)
		if err != nil {
			return
		}
		if len(readings) == 0 || len(readings) > 10 || len(nanos) != len(readings) || !slices.IsSorted(nanos) {
			t.Fatalf("%d readings at %v", len(readings), nanos)
		}
		for _, r := range readings {
			if len(r.CPUs) > maxCPUs || r.Memory < 0 || r.Spent < 0 || !slices.IsSorted(numbers(r)) {
				t.Fatalf("%+v", r)
			}
		}
	})
}
