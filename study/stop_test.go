package study

import (
	"strings"
	"testing"

	"tare/record"
)

// TestWide: a width near the margin or above it is warned of, and the words fit.
func TestWide(t *testing.T) {
	for _, c := range []struct {
		stop Stop
		want string
	}{
		{Stop{Width: 0.015, Margin: 0.03}, ""},
		{Stop{Width: 0.02, Margin: 0.03}, ""},
		{Stop{Width: 0.029, Margin: 0.03}, "often too wide"},
		{Stop{Width: 0.03, Margin: 0.03}, "often too wide"},
		{Stop{Width: 0.05, Margin: 0.03}, "mostly too wide"},
		{Stop{Width: 0.05, Margin: 0.03, Fixed: 5}, ""},
	} {
		if got := c.stop.Wide(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.stop, got, c.want)
		}
	}
	if got := (Stop{Width: 0.015, Margin: 0.03}).WideAt(0.05); !strings.Contains(got, "mostly") {
		t.Errorf("another width: %q", got)
	}
}

// TestBare: fewer blocks than an interval takes are said, unless nothing is compared.
func TestBare(t *testing.T) {
	two := []Stratum{{Cells: []record.Cell{{}, {}}}}
	for want, s := range map[string]*Study{
		"fixed: 1 gives no interval": {Stop: Stop{Fixed: 1}, Strata: two},
		"fixed: 2 gives no interval": {Stop: Stop{Fixed: 2}, Strata: two},
	} {
		if got := s.Bare(3); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, s := range []*Study{{Stop: Stop{Fixed: 3}, Strata: two}, {Strata: two}, {Stop: Stop{Fixed: 1}, Strata: []Stratum{{Cells: []record.Cell{{}}}}}} {
		if got := s.Bare(3); got != "" {
			t.Errorf("%+v: %q", s.Stop, got)
		}
	}
}
