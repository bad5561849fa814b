package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"tare/scripts/truth/causes"
)

// causesSection plants causes with a name and foreign ones, by arithmetic that shares no code
// with the rules that look for them.
func causesSection(_ context.Context, l *lab, w io.Writer) ([]figure, error) {
	n := 1000
	if l.long {
		n = 20_000
	}
	n = max(20, int(float64(n)*l.scale))
	var out []figure
	curve := "panel,series,x,y\n"
	for _, b := range l.pop.bands() {
		if !l.only.MatchString("causes, " + b.Name) {
			continue
		}
		fmt.Fprintln(w)
		r, err := causes.Run(w, l.seed, n, b)
		if err != nil {
			return nil, err
		}
		out = append(out, causesFigures(&r)...)
		curve += curveOf(&r)
	}
	if l.curve == "" {
		return out, nil
	}
	return out, os.WriteFile(l.curve, []byte(curve), 0o644) //nolint:gosec // a picture's data, for everyone
}

// curveOf is a panel of the figure: of the findings of each confidence, the part that is right.
func curveOf(r *causes.Report) string {
	var b strings.Builder
	for _, x := range r.Bins {
		if x.Told >= enoughStudies {
			fmt.Fprintf(&b, "%s,the findings,%.3f,%.1f\n", r.Band, x.Promised/float64(x.Told), 100*float64(x.Right)/float64(x.Told))
		}
	}
	fmt.Fprintf(&b, "%s,as promised,0.45,45\n%s,as promised,0.95,95\n", r.Band, r.Band)
	return b.String()
}

// causesFigures are what is wanted of causes. Where trials scatter by more than a mild cause
// costs, no rule can name most of them: then it must not name them wrong.
func causesFigures(r *causes.Report) []figure {
	var out []figure
	share := func(name string, hits, of int, b band) {
		p := float64(hits) / math.Max(1, float64(of))
		out = append(out, figure{of: "causes, " + r.Band, name: name, value: p, err: math.Sqrt(p * (1 - p) / math.Max(1, float64(of))), number: float64(of), studies: of, band: b, promised: true})
	}
	least := atLeast(0.95)
	if r.Band != lowScatter {
		least = none()
	}
	share("mild causes named right, where the study has all that tells them apart", r.Full.Right, r.Full.N, least)
	share("mild causes named right, in all studies", r.Known.Right, r.Known.N, none())
	share("mild causes named wrong", r.Known.Wrong, r.Known.N, atMost(0.02))
	share("causes on a host that neighbours fill, named wrong", r.Crowded.Wrong, r.Crowded.N, atMost(0.02))
	share("foreign causes other or left untold", r.Foreign.N-r.Foreign.Wrong, r.Foreign.N, atLeast(0.9))
	share("foreign causes named wrong", r.Foreign.Wrong, r.Foreign.N, atMost(0.02))
	for _, x := range r.Bins {
		if x.From >= 0.5 && x.Told > 0 {
			share(fmt.Sprintf("right of those told with a confidence of %.2f", x.From), x.Right, x.Told, atLeast(math.Min(x.Promised/float64(x.Told), 1)))
		}
	}
	return out
}
