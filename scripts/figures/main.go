// Command figures draws the figures of docs/method.md and docs/economy.md.
//
// The data path: 1. `go test ./plan -run Figures -update` simulates and writes
// docs/img/method-NAME.csv, and `go run ./scripts/truth -only causes -curve
// docs/img/method-causes.csv -seed 20261123 -scale 3` that of the causes, and `make economy
// ECONOMY="-plot docs/img/method-economy.csv"` that of docs/economy.md; 2. read takes such a file; 3. draw makes its panels
// with gonum's plot; 4. method-NAME.svg is written beside it. The same data
// gives the same bytes, and a test holds the committed files to that.
package main

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

func main() {
	dir := flag.String("dir", "docs/img", "where the data is, and the figures go")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	all, err := specs()
	for i := range all {
		var svg []byte
		if svg, err = all[i].render(dir); err == nil {
			err = os.WriteFile(filepath.Join(dir, all[i].Name+".svg"), svg, 0o644) //nolint:gosec // a picture for everyone
		}
		if err != nil {
			break
		}
	}
	return err
}

// point is a row of the data: y in per cent, unless the figure says otherwise.
type point struct {
	panel, series string
	x, y          float64
}

func (f *spec) render(dir string) ([]byte, error) {
	file, err := os.Open(filepath.Join(dir, f.Name+".csv")) //nolint:gosec // the user's own path
	if err != nil {
		return nil, fmt.Errorf("%w; `go test ./plan -run Figures -update` writes it", err)
	}
	defer func() { _ = file.Close() }()
	points, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	svg, err := f.draw(points)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", f.Name, err)
	}
	// Whoever has not the font that the letters were measured with gets one
	// alike, not the browser's serif.
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), nil
}

func read(r io.Reader) ([]point, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	var out []point
	for i, row := range rows {
		if i == 0 {
			continue // names
		}
		if len(row) < 4 {
			return nil, fmt.Errorf("line %d has %d columns, not panel, series, x, y", i+1, len(row))
		}
		p := point{panel: row[0], series: row[1]}
		for k, v := range []*float64{&p.x, &p.y} {
			if *v, err = strconv.ParseFloat(row[2+k], 64); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
		out = append(out, p)
	}
	return out, nil
}
