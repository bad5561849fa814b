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
	share("mild causes named right, where the study has all that tells them apart", r.Full.Right, r.Full.N, atLeast(0.95))
	share("mild causes named right, in all studies", r.Known.Right, r.Known.N, none())
	share("mild causes named wrong", r.Known.Wrong, r.Known.N, atMost(0.02))
	share("causes on a host that neighbours fill, named wrong", r.Crowded.Wrong, r.Crowded.N, atMost(0.05))
	share("foreign causes other or left untold", r.Foreign.N-r.Foreign.Wrong, r.Foreign.N, atLeast(0.9))
	return out, nil
}
