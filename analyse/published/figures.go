package published

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"tare/record"
)

// Figure is one row of the published figures.
type Figure struct {
	Benchmark string        `json:"benchmark"`
	Case      string        `json:"case"`
	Unit      string        `json:"unit"` // as published
	Better    record.Better `json:"better"`
	Base      float64       `json:"published_base"`  // runc
	Other     float64       `json:"published_other"` // runsc
	Ratio     float64       `json:"published_ratio"` // Other/Base
	Platform  string        `json:"platform"`        // of runsc: ptrace unless the figure says another
}

//go:embed gvisor-guide.csv
var guideCSV string

// maxFigures bounds a file; the guide has 34.
const maxFigures = 10_000

// readFigures reads published figures: CSV, lines that begin with # are comments.
func readFigures(r io.Reader) ([]Figure, error) {
	c := csv.NewReader(r)
	c.Comment = '#'
	c.FieldsPerRecord = 6
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	if got, want := strings.Join(head, ","), "benchmark,case,unit,direction,runc,runsc"; got != want {
		return nil, fmt.Errorf("published figures: the columns are %q; want %q", got, want)
	}
	var out []Figure
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("published figures: %w", err)
		}
		line, _ := c.FieldPos(0)
		if len(out) == maxFigures {
			return nil, fmt.Errorf("published figures: line %d: more than %d", line, maxFigures)
		}
		f := Figure{Benchmark: rec[0], Case: rec[1], Unit: rec[2], Better: record.Better(rec[3]), Platform: "ptrace"}
		if f.Better != record.Higher && f.Better != record.Lower {
			return nil, fmt.Errorf("published figures: line %d: the direction is %q; write higher or lower", line, rec[3])
		}
		for i, dst := range []*float64{&f.Base, &f.Other} {
			v, err := strconv.ParseFloat(rec[4+i], 64)
			if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v <= 0 {
				return nil, fmt.Errorf("published figures: line %d: %q is not a positive number", line, rec[4+i])
			}
			*dst = v
		}
		if f.Ratio = f.Other / f.Base; f.Ratio == 0 || math.IsInf(f.Ratio, 0) {
			return nil, fmt.Errorf("published figures: line %d: the ratio of %s and %s is out of range", line, rec[5], rec[4])
		}
		out = append(out, f)
	}
}

// guideFigures returns the guide's figures. In its rows of syscall the case is the platform.
func guideFigures() ([]Figure, error) {
	out, err := readFigures(strings.NewReader(guideCSV))
	for i := range out {
		if out[i].Benchmark == "syscall" {
			out[i].Platform = out[i].Case
		}
	}
	return out, err
}
