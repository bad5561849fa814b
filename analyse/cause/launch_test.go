package cause

import (
	"math"
	"strings"
	"testing"
)

// TestLaunch: a start is the runtime's or the program's, by the steps; without a cost
// nothing is said of it.
func TestLaunch(t *testing.T) {
	steps := func(value, runtime, program float64) sheet {
		s := blank()
		s[fValue], s[fRuntime], s[fProgram] = value, runtime, program
		return s
	}
	nan := math.NaN()
	for _, c := range []struct {
		name      string
		own, base sheet
		costs     bool
		want      Name
		text      string
	}{
		{"a container", steps(0.040, 0.034, 0.003), steps(0.0045, 0.002, 0.002), true, Path, "32 ms longer than natively, 97 %"},
		{"a slow container", steps(1.7, 1.6, 0.003), steps(0.0045, 0.002, 0.002), true, Path, " 1.6 s longer than natively"},
		{"a container whose program has no step", steps(0.040, 0.034, nan), steps(0.0045, 0.002, nan), true, Path, "100 %"},
		{"an interpreter in gVisor", steps(1.1, 0.15, 0.80), steps(0.3, 0.004, 0.3), true, Untold, "500 ms longer than natively, 77 %"},
		{"no slower", steps(0.3, 0.02, 0.3), steps(0.3, 0.004, 0.3), false, Unknown, elsewhere},
	} {
		f := facts{own: c.own, base: c.base, costs: c.costs, load: nan}
		v := decide(rules(), &f)
		got := Finding{Cause: v.cause, Among: v.among, Missing: v.missing}
		if text := sentence(&got, &f, &v); v.cause != c.want || !strings.Contains(text, c.text) {
			t.Errorf("%s: %s, want %s; %q", c.name, v.cause, c.want, text)
		}
	}
}

// TestPast: if readings are missing, the message says how to get them, on a host and on a cluster. It does not for imported
// results, because nobody can measure them again.
func TestPast(t *testing.T) {
	for _, c := range []struct {
		past, cluster, use, observe bool
	}{{use: true}, {cluster: true, observe: true}, {past: true}} {
		f := facts{own: blank(), base: blank(), load: math.NaN(), past: c.past, cluster: c.cluster}
		v := decide(rules(), &f)
		use, observe := strings.Contains(v.missing, "collect: {use:"), strings.Contains(v.missing, "--observe")
		if v.cause != Unknown || !strings.Contains(v.missing, "readings of the collectors") || use != c.use || observe != c.observe {
			t.Errorf("%+v: %s, %q", c, v.cause, v.missing)
		}
	}
}
