package proc

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/collect/collecttest"
	"tare/record"
)

// BenchmarkRead500 reads 500 sleeping threads, and says what part of one
// processor that takes at 10 Hz with its searches: the target is under 1 %.
func BenchmarkRead500(b *testing.B) {
	for name, o := range map[string]Options{"bpf": {Way: BPF}, "held": {Way: Files}, "opened": {Way: Files, Held: 1}} {
		b.Run(name, func(b *testing.B) {
			sleepers(b, 500)
			var now time.Duration
			o.Now = func() time.Duration { return now }
			c, err := NewWith(o).Open(context.Background(), nil)
			if err != nil {
				b.Skip(err)
			}
			defer c.Close()
			p := c.(*probe)
			if len(p.order) < 500 {
				b.Fatalf("%d threads found", len(p.order))
			}
			var dst []record.Sample
			b.ReportAllocs()
			for b.Loop() {
				now += 100 * time.Millisecond
				if dst, err = c.Read(dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
			perRead := dst[len(dst)-1].Value / float64(b.N) // of all readings but the last
			b.ReportMetric(perRead*1e6, "cpu-us/read")
			b.ReportMetric(perRead*10*100, "%core@10Hz")
		})
	}
}

// sleepers starts n threads of this process that sleep in a read until the
// benchmark ends.
func sleepers(b *testing.B, n int) {
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	fd := int(r.Fd())
	ready, done := make(chan struct{}), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			ready <- struct{}{}
			_, _ = unix.Read(fd, make([]byte, 1)) // ends with the pipe
			done <- struct{}{}
		}()
	}
	for range n {
		<-ready
	}
	time.Sleep(50 * time.Millisecond) // until they are in the read
	b.Cleanup(func() {
		_ = w.Close() // wakes them
		for range n {
			<-done
		}
		_ = r.Close() // only read from
	})
}

// TestReadAllocatesNothing: between searches a Read only fills dst.
func TestReadAllocatesNothing(t *testing.T) {
	var spent time.Duration
	p, err := NewWith(Options{
		Now:   func() time.Duration { return 0 },
		Spent: func() time.Duration { spent += time.Second; return spent }, // too dear to be made
	}).Open(context.Background(), nil)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	collecttest.AllocatesNothing(t, p) // the first Read searches
}
