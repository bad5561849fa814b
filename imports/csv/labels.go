package csv

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/window"
	"tare/record"
)

// Kinds of the values of rows with labels and a time.
const (
	kindGauge   = "gauge"   // a state
	kindCounter = "counter" // only rises
	kindRate    = "rate"    // rise a second since the last row
)

// reading is a figure's name and labels; without labels it is a response.
type reading struct {
	name   string
	labels record.Labels
}

const (
	maxLabels  = 16
	maxWord    = 200
	labelsHint = "write NAME=TEXT,NAME=TEXT, such as end=server,role=vhost"
)

// labels reads NAME=TEXT,NAME=TEXT; ok is false for other text.
func labels(text string) (out record.Labels, ok bool) {
	if text == "" {
		return "", true
	}
	var pairs []string
	for part := range strings.SplitSeq(text, ",") {
		k, v, ok := strings.Cut(part, "=")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		bad := func(s string) bool {
			return s == "" || len(s) > maxWord || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '=' || r == 0xfffd })
		}
		if !ok || bad(k) || bad(v) || len(pairs) == 2*maxLabels {
			return "", false
		}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == k {
				return "", false
			}
		}
		pairs = append(pairs, strings.Clone(k), strings.Clone(v))
	}
	return record.MakeLabels(pairs...), true
}

// series returns the series of a labelled figure. A rate becomes its counter, which begins at
// the first row.
func (f *figure) series(of reading, kind string) record.Series {
	s := record.Series{Name: of.name, Labels: of.labels, Unit: f.unit, Kind: record.Gauge, T: f.t, V: f.v}
	switch kind {
	case kindCounter:
		s.Kind = record.Counter
	case kindRate:
		s.Kind = record.Counter
		switch f.unit {
		case record.Cores:
			s.Unit = record.Second
		case record.BytesPerSecond:
			s.Unit = record.Byte
		case record.PerSecond:
			s.Unit = record.Count
		case record.Fraction: // seconds a second
			s.Unit = record.Second
		}
		sum := 0.0
		s.V = make([]float64, len(f.v))
		for i := 1; i < len(f.v); i++ {
			sum += f.v[i] * (f.t[i] - f.t[i-1]).Seconds()
			s.V[i] = max(-math.MaxFloat64, min(math.MaxFloat64, sum))
		}
	}
	return s
}

// figures reduces labelled series to figures, as for measured trials.
func figures(all []record.Series, to time.Duration) []record.Sample {
	lines := make([]*window.Series, 0, len(all))
	for i := range all {
		lines = append(lines, &window.Series{Series: all[i], Stamped: true})
	}
	slices.SortStableFunc(lines, func(a, b *window.Series) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Labels, b.Labels))
	})
	return window.Figures(lines, window.Span{To: to})
}
