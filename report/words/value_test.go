package words

import (
	"math"
	"testing"
	"time"

	"tare/record"
)

func TestValue(t *testing.T) {
	for _, c := range []struct {
		v    float64
		u    record.Unit
		want string
	}{
		{9.4e-6, record.Second, "9.40 µs"},
		{0.00099999, record.Second, "1.00 ms"},
		{42e-9, record.Second, "42.0 ns"},
		{0, record.Second, "0 s"},
		{1234.5, record.Second, "1234 s"},
		{1.9e9, record.BytesPerSecond, "1.90 GB/s"},
		{1.9e9, record.BitsPerSecond, "15.2 Gb/s"},
		{25 << 20, record.Byte, "25.0 MiB"},
		{1023.9, record.Byte, "1.00 KiB"},
		{512, record.Byte, "512 B"},
		{-3 << 20, record.Byte, "-3.00 MiB"},
		{12345, record.PerSecond, "12.3 k/s"},
		{999.6, record.PerSecond, "1.00 k/s"},
		{0.25, record.Cores, "0.250 cores"},
		{0.123, record.Fraction, "12.3 %"},
		{17, record.Count, "17"},
		{123456, record.Count, "123 k"},
		{math.NaN(), record.Second, "-"},
		{math.Inf(1), record.Byte, "+Inf"},
		{3, "", "3.00"},
	} {
		if got := Value(c.v, c.u); got != c.want {
			t.Errorf("Value(%v, %s) = %q, want %q", c.v, c.u, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 999 * time.Millisecond: "1 s", 250 * time.Second: "4 min 10 s", time.Hour: "1 h",
		2*time.Hour + 3*time.Minute + 9*time.Second: "2 h 3 min",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}
