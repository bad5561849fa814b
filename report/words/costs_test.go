package words

import (
	"fmt"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/stat"
)

// TestDirections: a cost is said so that more is worse, whatever the better side of the
// response: a third of the throughput costs three times as much.
func TestDirections(t *testing.T) {
	for _, c := range []struct {
		comparison analyse.Comparison
		tone       Tone
		want       string
	}{
		{of("a", latency, 2.1, stat.Slower), Worse, "runc: 2.10 × the cost in a."},
		{of("a", latency, 0.5, stat.Faster), Better, "runc: 2.00 × faster in a."},
		{of("a", throughput, 0.31, stat.Slower), Worse, "runc: 3.23 × the cost in a."},
		{of("a", throughput, 1.5, stat.Faster), Better, "runc: 1.50 × faster in a."},
		{of("a", memory, 7.9, stat.Slower), Worse, "runc: 7.90 × the cost in a."},
		{of("a", size, 2, stat.Higher), Note, "runc: 2.00 × the size in a."},
		{of("a", latency, 1.001, stat.Equivalent), Equal, "runc: free: a."},
		{atMost(of("a", latency, 0.9, stat.Undecided), 0.035), Bounded, "runc: no cost above 4 % in a."},
		{of("a", latency, 1.1, stat.Undecided), Undecided, "runc: too noisy to say in a."},
		{of("a", latency, 1.3, stat.Undecided), Undecided, "runc: too few blocks to be sure in a."},
	} {
		if s := about(t, result(c.comparison)); s.Text != c.want || s.Tone != c.tone {
			t.Errorf("got %s: %s\nwant %s: %s", s.Tone, s.Text, c.tone, c.want)
		}
	}
}

// TestManyStrataAreSummedUp: the largest cost, how many have one, and in the headline the
// worst by its levels.
func TestManyStrataAreSummedUp(t *testing.T) {
	var c []analyse.Comparison
	for i := range 48 {
		v, ratio := stat.Slower, 0.9-float64(i)/100
		switch {
		case i >= 45:
			v, ratio = stat.Equivalent, 1
		case i >= 40:
			v, ratio = stat.Undecided, 1.1
		}
		c = append(c, of("rr", throughput, ratio, v, fmt.Sprintf("size=%dB", i+1), "mode=rr"))
	}
	s := about(t, result(c...))
	want := "runc: up to 1.96 × the cost in rr (40 of 48)."
	if s.Text != want || s.Tone != Worse {
		t.Errorf("got  %s\nwant %s", s.Text, want)
	}
	if h := Headline(result(c...)); !strings.Contains(h.Text, "runc in rr size=40B, 1.96 × (1.63 to 2.18).") {
		t.Errorf("the headline: %s", h.Text)
	}
}

// TestWorstIsByCost: of a throughput the least ratio costs most.
func TestWorstIsByCost(t *testing.T) {
	h := Headline(result(of("a", latency, 3, stat.Slower), of("b", throughput, 0.1, stat.Slower), of("c", memory, 5, stat.Slower)))
	if !strings.Contains(h.Text, "runc in b, 10.0 ×") {
		t.Errorf("the largest cost is said to be: %s", h.Text)
	}
	s := about(t, result(of("a", latency, 3, stat.Slower), of("b", throughput, 0.1, stat.Slower), of("c", memory, 5, stat.Slower)))
	if a, b, c := strings.Index(s.Text, "in a"), strings.Index(s.Text, "in b"), strings.Index(s.Text, "in c"); b > c || c > a {
		t.Errorf("not by cost: %s", s.Text)
	}
}

// TestShort: a small screen has the most important part of a sentence, with one name in it.
func TestShort(t *testing.T) {
	skipped := of("a", latency, 0, "")
	skipped.Skipped = "there is no /dev/kvm on this host, and no other way"
	for want, c := range map[string][]analyse.Comparison{
		"runc: 2.10 × the cost (a).":       {of("a", latency, 2.1, stat.Slower)},
		"runc: up to 10.0 × the cost (b).": {of("a", latency, 3, stat.Slower), of("b", throughput, 0.1, stat.Slower), of("c", latency, 1, stat.Equivalent)},
		"runc: up to 3.00 × the cost (a).": {of("a", latency, 2, stat.Slower, "size=1"), of("a", latency, 3, stat.Slower, "size=2")},
		"runc: up to 2.00 × faster (a).":   {of("a", latency, 0.5, stat.Faster), of("b", latency, 0.8, stat.Faster)},
		"runc: 2.00 × less memory (a).":    {of("a", memory, 0.5, stat.Faster)},
		"runc: free: a and 2 more.":        {of("a", latency, 1, stat.Equivalent), of("b", latency, 1, stat.Equivalent), of("c", latency, 1, stat.Equivalent)},
		"runc: too noisy to say in b.":     {atMost(of("a", latency, 0.9, stat.Undecided), 0.035), of("b", latency, 1.1, stat.Undecided)},
		"runc: skipped.":                   {skipped},
	} {
		if s := about(t, result(c...)); s.Short != want {
			t.Errorf("got  %s\nwant %s", s.Short, want)
		}
	}
	if s := Headline(result(of("a", latency, 2, stat.Slower))); s.Short != "" {
		t.Errorf("of the headline: %s", s.Short)
	}
}

// TestCommands: each command of a weighing is said by itself, and the headline's largest cost is of
// the figure by which the study stops, as in the sentences.
func TestCommands(t *testing.T) {
	wall := of("commands", latency, 1.7, stat.Slower, "command=gzip f")
	free := of("commands", latency, 1, stat.Equivalent, "command=/usr/bin/zstd -c --ultra f")
	peak := of("commands", memory, 3.07, stat.Slower, "command=gzip f")
	peak.First = false
	r := result(wall, peak, free)
	if s, want := about(t, r).Text, "runc: 1.70 × the cost in gzip f; free: /usr/bin/zstd -c --ul...."; s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	h := Headline(r).Text
	if first, _, _ := strings.Cut(h, " Of 1 of further responses, "); !strings.Contains(first, "1.70 ×") || strings.Contains(first, "3.07") {
		t.Errorf("the headline: %s", h)
	}
}

// TestCeil: a bound is never written smaller than it is, nor much larger.
func TestCeil(t *testing.T) {
	for share, want := range map[float64]string{0.035: "4 %", 0.04: "4 %", 0.0401: "5 %", 0.0151: "2 %", 0.01: "1 %", 0.0031: "0.4 %", 0.003: "0.3 %", 0.0995: "10 %"} {
		if got := ceil(share); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
}

// TestPerhapsInATable: an interval on one side of 1 stands beside the cost that it is of, with a sign of
// that side. Where one lies above and one below, the range has no side.
func TestPerhapsInATable(t *testing.T) {
	more, less := of("a", latency, 1.3, stat.Undecided, "size=1"), of("a", latency, 0.5, stat.Undecided, "size=2")
	for _, c := range []struct {
		of    []*analyse.Comparison
		first string
		then  string
		shown stat.Verdict
	}{
		{[]*analyse.Comparison{&more}, "1.30 ×", "±15 %", "perhaps slower"},
		{[]*analyse.Comparison{&more, &less}, "0.45–1.56", "", stat.TooFew},
	} {
		first, then, shown := Groups(c.of)[0].Cost()
		if first != c.first || then != c.then || shown != c.shown {
			t.Errorf("%q, %q, %s; want %q, %q, %s", first, then, shown, c.first, c.then, c.shown)
		}
	}
}
