package param

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "512": 512, "512B": 512, "4k": 4096, "4K": 4096, "4Ki": 4096, "64KiB": 64 << 10, " 1 GiB ": 1 << 30,
		"1kB": 1000, "1KB": 1000, "2MB": 2e6, "3GB": 3e9, "1TB": 1e12, "1M": 1 << 20, "1MiB": 1 << 20, "1T": 1 << 40,
		"1k": 1 << 10, "1m": 1 << 20, "1g": 1 << 30, "2t": 2 << 40, "1gi": 1 << 30, "1gib": 1 << 30, "64kib": 64 << 10, "3mi": 3 << 20,
		"1.5KiB": 1536, "0.5k": 512, "7TiB": 7 << 40, "1e3": 1000, "2PiB": 2 << 50, "2Pi": 2 << 50, "1PB": 1e15, "7 EiB": 7 << 60,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"": "write a number and a unit", "B": "write", "-1": "write", "four": "write", "1 P": "write", "999999999PiB": "too large; write less than 8EiB", "8EiB": "too large", "1mb": "write", "1kb": "write", "1gB": "write", "0x10": "write", "1_000": "write",
		"NaN": "write", "1.5": "whole number of bytes", "0.0001KiB": "whole number of bytes", "9223372036854775808": "too large", "8388608TiB": "too large", "inf": "too large", "1e999": "write",
	} {
		_, err := ParseSize(text)
		wrong(t, fmt.Sprintf("ParseSize(%q)", text), err, why)
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1: "1B", 1000: "1000B", 1024: "1KiB", 1536: "1536B", 64 << 20: "64MiB", 3 << 40: "3TiB", 1 << 50: "1024TiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "2s": 2 * time.Second, " 500 ms ": 500 * time.Millisecond, "100us": 100 * time.Microsecond, "100µs": 100 * time.Microsecond,
		"4m": 4 * time.Minute, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "7ns": 7,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-1s", "s", "two seconds", "1d", "9999999h"} {
		_, err := ParseDuration(text)
		wrong(t, fmt.Sprintf("ParseDuration(%q)", text), err, "write a number and a unit")
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "0-3": {0, 1, 2, 3}, "3,0-1": {0, 1, 3}, "1,1,0-1": {0, 1}, " 2 ": {2}, "8191": {8191}, "5-5": {5},
	} {
		got, err := ParseCPUs(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("ParseCPUs(%q): %v (-want +got)\n%s", text, err, d)
		}
	}
	for _, text := range []string{"", ",", "0,", "1-0", "-1", "0-", "a", "0-1-2", "8192", "0-8192", "0-99999", "1.5"} {
		_, err := ParseCPUs(text)
		wrong(t, fmt.Sprintf("ParseCPUs(%q)", text), err, "0-1,3")
	}
}

// The texts of the fuzz functions are those of the shipped studies.

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"64KiB", "4KiB", "32MiB", "1B", "1GiB", "1.5MB", "512", "none", "0x1p4", "-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d bytes", text, n)
		}
		// A float64 holds every multiple of a unit up to 2^53 of it, but not
		// every number over that: such sizes are read as the nearest one.
		if again, err := ParseSize(FormatSize(n)); err != nil || again != n {
			t.Errorf("%q is %d, written as %s, which is %d, %v", text, n, FormatSize(n), again, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"300ms", "1s", "500ms", "4m", "2h45m", "100us", "0", "1 s", "-1s", "5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q is %v", text, d)
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q is %v, which is %v, %v", text, d, again, err)
		}
	})
}

func FuzzParseCPUs(f *testing.F) {
	for _, s := range []string{"0-1,3", "0", "1", "0-8191", "3,2,1", "0-", "1-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := ParseCPUs(text)
		if err != nil {
			return
		}
		if len(cpus) == 0 || cpus[0] < 0 || cpus[len(cpus)-1] > 8191 {
			t.Fatalf("%q is %v", text, cpus)
		}
		if !slices.IsSorted(cpus) || len(slices.Compact(slices.Clone(cpus))) != len(cpus) {
			t.Fatalf("%q is not in rising order: %v", text, cpus)
		}
		again, err := ParseCPUs(strings.Trim(strings.Join(strings.Fields(fmt.Sprint(cpus)), ","), "[]"))
		if d := cmp.Diff(cpus, again); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, d)
		}
	})
}

func TestAboutSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 10 << 10: "10 KiB", 35 << 30: "35 GiB", 100 << 40: "100 TiB", 5 << 30: "5 GiB", 5 << 29: "2.5 GiB"} {
		if got := AboutSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestFormatDuration: a duration has no parts that are zero, and is read again as the same.
func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", time.Hour + 5*time.Second: "1h5s", 20 * time.Second: "20s",
		100 * time.Millisecond: "100ms", 0: "0s", -time.Minute: "-1m", 10*time.Hour + 10*time.Minute + 10*time.Second: "10h10m10s",
	} {
		got := FormatDuration(d)
		if again, err := ParseDuration(got); got != want || d > 0 && (err != nil || again != d) {
			t.Errorf("%v: %s, read again as %v, %v", d, got, again, err)
		}
	}
}
