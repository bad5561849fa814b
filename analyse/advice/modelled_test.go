package advice

import (
	"strings"
	"testing"

	"tare/analyse/cause"
)

// TestModelledWords: nothing of a model's figures is called measured.
func TestModelledWords(t *testing.T) {
	for _, modelled := range []bool{true, false} {
		l := newLab("net", map[string]string{"connections": "16"})
		l.in.Modelled = modelled
		one, two := at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2")
		for _, c := range []struct {
			gain float64
			text func(Item) string
			want string
		}{
			{0, func(x Item) string { return x.Unproven }, "not measured; "},
			{0.5, func(x Item) string { return x.Text }, "the study measured it and found a loss"},
		} {
			l.in.Findings, l.values = nil, map[string]map[int]float64{}
			l.finds(cause.Helper, "vhost", one)
			if c.gain > 0 {
				l.measures(one, 100)
				l.measures(two, 100*c.gain)
			}
			want := c.want
			if modelled {
				want = strings.ReplaceAll(want, "measured", "modelled")
			}
			var texts []string
			found := false
			for _, x := range Build(l.in) {
				texts = append(texts, c.text(x))
				found = found || strings.Contains(c.text(x), want)
			}
			if !found {
				t.Errorf("modelled %v: %q, want %q", modelled, texts, want)
			}
		}
	}
}
