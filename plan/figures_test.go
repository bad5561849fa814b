package plan

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The figures of docs/method.md. Their data is docs/img/method-NAME.csv, which
// this writes from the simulation:
//
//	go test ./plan -run Figures -update && go run ./scripts/figures
//
// (two minutes; the second draws them). Without -update a smaller simulation of
// other machines must agree with the files within what chance explains, so that
// a figure cannot outlive the method that it shows.

var update = flag.Bool("update", false, "simulate the figures of docs/method.md anew")

const figureDir = "../docs/img"

// point is one row of a figure's data; se is the standard error that y has from
// the simulation, 0 for what is drawn from one machine of a fixed seed.
type point struct {
	panel, series string
	x, y, se      float64
}

// figure computes its points from so many studies for each.
type figure struct {
	name        string
	full, quick int // studies
	points      func(studies int, seed uint64) []point
}

func figures() []figure {
	return []figure{
		{"drift", 1, 1, driftPoints},
		{"order", 700, 40, orderPoints},
		{"power", 500, 16, powerPoints},
	}
}

func TestFigures(t *testing.T) {
	_, _, seed := settings(t)
	for _, f := range figures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(figureDir, "method-"+f.name+".csv")
			if *update {
				if err := writePoints(file, f.points(f.full, seed)); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := readPoints(file)
			if err != nil {
				t.Fatalf("%v; run this test with -update", err)
			}
			other := seed
			if f.full > 1 {
				other++ // machines of its own: else the two share their errors
			}
			got := f.points(f.quick, other)
			if len(got) != len(want) {
				t.Fatalf("%s has %d points, the simulation gives %d; run this test with -update", file, len(want), len(got))
			}
			for i, g := range got {
				w := want[i]
				// Blocks that a rule spends are an x of their own; they follow y.
				if g.panel != w.panel || g.series != w.series || math.Abs(g.x-w.x) > 1+1e-6*math.Abs(w.x) {
					t.Fatalf("%s: point %d is %s, %s, %g; the simulation gives %s, %s, %g", file, i, w.panel, w.series, w.x, g.panel, g.series, g.x)
				}
				if chance := 4 * math.Hypot(g.se, w.se); math.Abs(g.y-w.y) > chance+1e-5*math.Abs(w.y) {
					t.Errorf("%s: %s, %s at %g: %.4g is drawn, %.4g is simulated now; chance explains %.2g", file, w.panel, w.series, w.x, w.y, g.y, chance)
				}
			}
		})
	}
}

func writePoints(file string, points []point) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	_ = w.Write([]string{"panel", "series", "x", "y", "se"})
	for _, p := range points {
		_ = w.Write([]string{p.panel, p.series, fmt.Sprintf("%.6g", p.x), fmt.Sprintf("%.6g", p.y), fmt.Sprintf("%.2g", p.se)})
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return f.Close()
}

func readPoints(file string) ([]point, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var out []point
	for _, r := range rows[1:] {
		p := point{panel: r[0], series: r[1]}
		for i, v := range []*float64{&p.x, &p.y, &p.se} {
			if *v, err = strconv.ParseFloat(r[2+i], 64); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// share makes a point of a rate, in per cent.
func share(panel, series string, x float64, c *rate) point {
	var n float64
	for _, k := range c.of {
		n += k
	}
	// A share of nought has an error too: that of one hit more and one miss more.
	p := (c.share()*n + 1) / (n + 2)
	return point{panel, series, x, 100 * c.share(), 100 * c.error4(p) / 4}
}
