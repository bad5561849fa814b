package words

import (
	"math"
	"strconv"
	"strings"
	"time"

	"tare/record"
)

// Value writes a value in base units as people read it, with three significant
// digits: seconds and rates with SI prefixes (9.4 µs, 1.9 GB/s, 12.3 k/s), bytes
// with IEC prefixes (25.0 MiB), fractions in per cent.
func Value(v float64, u record.Unit) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	switch u {
	case record.Second:
		return seconds(v)
	case record.Byte:
		return prefixed(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"})
	case record.BytesPerSecond:
		return prefixed(v, 1000, []string{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"})
	case record.BitsPerSecond:
		return prefixed(8*v, 1000, []string{"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"})
	case record.PerSecond:
		return prefixed(v, 1000, []string{"/s", "k/s", "M/s", "G/s"})
	case record.Cores:
		return digits(v) + " cores"
	case record.Fraction:
		return digits(100*v) + " %"
	case record.Count:
		if math.Abs(v) < 1e4 && v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strings.TrimSpace(prefixed(v, 1000, []string{"", "k", "M", "G", "T"}))
	}
	return strings.TrimSpace(digits(v) + " " + string(u))
}

func seconds(v float64) string {
	a := math.Abs(v)
	switch {
	case v == 0:
		return "0 s"
	case a < 0.9995e-6:
		return digits(v*1e9) + " ns"
	case a < 0.9995e-3:
		return digits(v*1e6) + " µs"
	case a < 0.9995:
		return digits(v*1e3) + " ms"
	}
	return digits(v) + " s"
}

func prefixed(v, base float64, units []string) string {
	i := 0
	for i < len(units)-1 && math.Abs(v) >= base*0.9995 {
		v /= base
		i++
	}
	if i == 0 && units[0] == "B" {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B" // there are no parts of a byte
	}
	return digits(v) + " " + units[i]
}

// PerOperation writes how many calls an operation makes.
func PerOperation(n float64) string { return digits(n) }

// digits writes three significant digits, and all digits before the point.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case a < 0.001 || a >= 1e7:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a < 0.9995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Ratio writes a ratio to the baseline: 1.03, 12.4, 0.97, 0.087. Two decimals
// around 1 on both sides of it, so that an interval's ends look alike.
func Ratio(v float64) string {
	if v >= 0.1995 && v < 0.9995 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return digits(v)
}

// Duration writes how long something took or will take, to the second and no
// finer: 4 min 10 s.
func Duration(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60
	var parts []string
	for _, p := range []struct {
		n    int
		unit string
	}{{h, " h"}, {m, " min"}, {s, " s"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+p.unit)
		}
	}
	if h > 0 && len(parts) > 2 {
		parts = parts[:2]
	}
	if len(parts) == 0 {
		return "0 s"
	}
	return strings.Join(parts, " ")
}
