package imports

import (
	"strings"

	"tare/record"
)

// Unit converts a tool's unit to a base unit and a factor; false for an unknown unit. Prefixes
// of bytes: K, M, G and T are powers of 1,000, with an i of 1,024; b and bit are bits.
func Unit(text string) (record.Unit, float64, bool) {
	t := strings.ReplaceAll(strings.TrimSpace(text), "µ", "u")
	switch strings.ToLower(t) {
	case "s", "sec", "secs", "second", "seconds":
		return record.Second, 1, true
	case "ms", "msec", "millisecond", "milliseconds":
		return record.Second, 1e-3, true
	case "us", "usec", "microsecond", "microseconds":
		return record.Second, 1e-6, true
	case "ns", "nsec", "nanosecond", "nanoseconds":
		return record.Second, 1e-9, true
	case "1/s", "/s", "ops/s", "op/s", "ops/sec", "req/s", "requests/s", "requests/sec", "rps", "tps", "iops", "hz", "transactions/s", "trans/s":
		return record.PerSecond, 1, true
	case "cores", "core":
		return record.Cores, 1, true
	case "millicores":
		return record.Cores, 1e-3, true
	case "count", "":
		return record.Count, 1, true
	case "1", "fraction", "ratio":
		return record.Fraction, 1, true
	case "%", "percent":
		return record.Fraction, 1e-2, true
	}
	rate := false
	for _, end := range []string{"/s", "/sec", "ps"} {
		if r, ok := strings.CutSuffix(t, end); ok {
			t, rate = r, true
			break
		}
	}
	scale := 1.0
	if len(t) > 1 {
		if i := strings.IndexByte("kmgt", t[0]|0x20); i >= 0 {
			base := 1000.0
			rest := t[1:]
			if r, ok := strings.CutPrefix(rest, "i"); ok {
				base, rest = 1024, r
			}
			for range i + 1 {
				scale *= base
			}
			t = rest
		}
	}
	switch t {
	case "B", "byte", "bytes", "Byte", "Bytes":
	case "b", "bit", "bits":
		scale /= 8
	default:
		return "", 0, false
	}
	if rate {
		return record.BytesPerSecond, scale, true
	}
	return record.Byte, scale, true
}

// Units returns examples of units for messages.
func Units() []string {
	return []string{"s", "ms", "us", "ns", "B", "KiB", "MB/s", "MiB/s", "Gbit/s", "1/s", "ops/s", "iops", "cores", "%", "count"}
}

// Better guesses the direction of a response from its unit: lower for times, higher for rates,
// neither for others.
func Better(u record.Unit) record.Better {
	switch u {
	case record.Second:
		return record.Lower
	case record.BytesPerSecond, record.PerSecond:
		return record.Higher
	}
	return record.Neither
}
