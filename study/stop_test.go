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

// TestAdaptive: "stop: adaptive" is a rule with looks of its own and without a width, in both forms and as an
// argument; other rules exclude it.
func TestAdaptive(t *testing.T) {
	const head = "study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {w: {kind: noop}}\n"
	for _, c := range []struct {
		stop  string
		set   []string
		fixed int
	}{
		{"stop: adaptive\n", nil, 0},
		{"stop: {rule: adaptive, margin: 5%}\n", nil, 0},
		{"stop: {fixed: 3}\n", []string{"stop.rule=adaptive"}, 0},
		{"stop: {fixed: 3}\n", []string{"stop=adaptive"}, 0},
		{"stop: adaptive\n", []string{"stop.fixed=4"}, 4},
	} {
		s, err := Parse("t.yaml", []byte(head+c.stop), testCatalogue(), c.set)
		if err != nil {
			t.Errorf("%q %v: %v", c.stop, c.set, err)
			continue
		}
		if got := s.Stop; got.Fixed != c.fixed || got.Adaptive != (c.fixed == 0) || got.Width != 0 || got.Adaptive && len(got.Looks) == 0 {
			t.Errorf("%q %v: %+v", c.stop, c.set, got)
		}
	}
	for stop, want := range map[string]string{
		"stop: adaptve\n":                      `t.yaml:4:7: "adaptve" is not a stopping rule; write adaptive, or stop in another way, such as {fixed: 10}`,
		"stop: {rule: adaptive, width: 1%}\n":  `t.yaml:4:24: width has no effect together with rule: adaptive (line 4); remove width or rule`,
		"stop: {rule: adaptive, fixed: 5}\n":   `t.yaml:4:24: fixed has no effect together with rule: adaptive (line 4); remove fixed or rule`,
		"stop: {rule: adaptive, tune: best}\n": `t.yaml:4:24: tune has no effect together with rule: adaptive (line 4); remove tune or rule`,
	} {
		if _, err := Parse("t.yaml", []byte(head+stop), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", stop, err, want)
		}
	}
}
