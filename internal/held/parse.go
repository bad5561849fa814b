package held

import (
	"bytes"
	"math"
)

// Uint reads a decimal number after spaces and tabs, and returns what follows it. ok is
// false if there is no number or it exceeds 64 bits.
func Uint(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	first := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		d := uint64(b[i] - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, b, false
		}
		n = n*10 + d
		i++
	}
	return n, b[i:], i > first
}

// Line cuts the first line off b, without its newline.
func Line(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// After returns what follows key on a line that starts with key and then a
// space, a tab or a colon; ok is false if the line has another key.
func After(line []byte, key string) (rest []byte, ok bool) {
	if len(line) <= len(key) || string(line[:len(key)]) != key {
		return nil, false
	}
	switch line[len(key)] {
	case ' ', '\t', ':':
		return line[len(key)+1:], true
	}
	return nil, false
}

// Value finds the number on the line that starts with key: the form of
// cgroup's flat keyed files (Documentation/admin-guide/cgroup-v2.rst,
// "Format"), of /proc/stat and of /proc/meminfo.
func Value(b []byte, key string) (uint64, bool) {
	for len(b) > 0 {
		var line []byte
		line, b = Line(b)
		if rest, ok := After(line, key); ok {
			n, _, ok := Uint(rest)
			return n, ok
		}
	}
	return 0, false
}

// Pressure reads one line of a pressure file: level is "some" or "full", the
// result the total stall in microseconds (Documentation/accounting/psi.rst).
// An example line:
//
//	some avg10=0.13 avg60=0.85 avg300=1.74 total=50670223
func Pressure(b []byte, level string) (micros uint64, ok bool) {
	for len(b) > 0 {
		var line []byte
		line, b = Line(b)
		rest, ok := After(line, level)
		if !ok {
			continue
		}
		i := bytes.LastIndex(rest, []byte("total="))
		if i < 0 {
			return 0, false
		}
		n, _, ok := Uint(rest[i+len("total="):])
		return n, ok
	}
	return 0, false
}
