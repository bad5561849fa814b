package collecttest_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"tare/collect"
	"tare/record"
	"tare/sandbox"
)

// docs:begin

// New returns the collector: bits in the kernel's pool of entropy.
func New() collect.Collector { return entropy{"/proc/sys/kernel/random/entropy_avail"} }

// entropy keeps no state. A test gives a path of its own.
type entropy struct{ path string }

func (entropy) Name() string { return "entropy" }
func (entropy) About() string {
	return "bits in the kernel's entropy pool (Documentation/admin-guide/sysctl/kernel.rst)"
}

func (entropy) Series() []record.Response {
	return []record.Response{{Name: "entropy", Unit: record.Count, Better: record.Neither, Help: "bits available"}}
}

func (e entropy) Check() error {
	if _, err := os.Stat(e.path); err != nil {
		return fmt.Errorf("entropy: %w; leave the collector entropy out of the study", err)
	}
	return nil
}

func (e entropy) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) {
	f, err := os.Open(e.path)
	if err != nil {
		return nil, fmt.Errorf("entropy: %w", err)
	}
	return &probe{f: f}, nil
}

type probe struct {
	f   *os.File
	buf [32]byte
}

func (p *probe) Read(dst []record.Sample) ([]record.Sample, error) {
	if p.f == nil {
		return dst, os.ErrClosed
	}
	n, err := p.f.ReadAt(p.buf[:], 0)
	if n == 0 {
		return dst, fmt.Errorf("entropy: %w", err)
	}
	bits, err := parse(p.buf[:n])
	if err != nil {
		return dst, err
	}
	return append(dst, record.Sample{Name: "entropy", Unit: record.Count, Kind: record.Gauge, Value: bits}), nil
}

func (p *probe) Close() error { // idempotent
	if p.f == nil {
		return nil
	}
	f := p.f
	p.f = nil
	return f.Close()
}

// parse is apart from reading, so that it can be fuzzed.
func parse(b []byte) (float64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("entropy: %w", err)
	}
	return float64(n), nil
}

// docs:end

// TestDocsShowThisCode keeps docs/add-a-collector.md and the code above equal.
func TestDocsShowThisCode(t *testing.T) {
	src, err := os.ReadFile("entropy_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/add-a-collector.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(src), "// docs:begin\n\n")
	code, _, _ = strings.Cut(code, "\n// docs:end")
	if len(code) < 500 || !strings.Contains(string(page), code) {
		t.Errorf("the page does not show this code:\n%s", code)
	}
}

func TestEntropy(t *testing.T) {
	e := New()
	if err := e.Check(); err != nil {
		t.Skip(err)
	}
	p, err := e.Open(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Read(nil)
	if err != nil || len(got) != 1 || got[0].Value <= 0 {
		t.Errorf("Read = %v, %v", got, err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Read(nil); err == nil {
		t.Error("Read after Close gives no error")
	}
	if _, err := parse([]byte("many")); err == nil {
		t.Error("parse takes words")
	}
}
