package main

import (
	"context"
	"io"
	"math"

	"tare/scripts/truth/causes"
)

// causesSection plants causes with a name and foreign ones, by arithmetic that shares no code
// with the rules that look for them.
func causesSection(_ context.Context, l *lab, w io.Writer) ([]figure, error) {
	if !l.only.MatchString("causes") {
		return nil, nil
	}
	n := 1000
	if l.long {
		n = 20_000
	}
	r, err := causes.Run(w, l.seed, n)
	if err != nil {
		return nil, err
	}
	var out []figure
	share := func(name string, hits, of int, b band) {
		p := float64(hits) / math.Max(1, float64(of))
		out = append(out, figure{of: "causes", name: name, value: p, err: math.Sqrt(p * (1 - p) / math.Max(1, float64(of))), number: float64(of), studies: of, band: b, promised: true})
	}
	share("mild causes named right, where the study has all that tells them apart", r.FullRight, r.Full, atLeast(0.95))
	share("mild causes named right, in all studies", r.Right, r.Known, atLeast(0.95))
	share("mild causes named wrong", r.Wrong, r.Known, atMost(0.02))
	share("foreign causes other or left untold", r.Withheld, r.Foreign, atLeast(0.9))
	return out, nil
}
