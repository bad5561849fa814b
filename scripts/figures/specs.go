package main

import (
	"bytes"
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed specs.yaml
var specsYAML []byte

// spec is how a figure looks. What is empty is left to the plot.
type spec struct {
	Name   string // of the files
	XLabel string
	XTicks []float64
	Panels []panel
	Series []style
}

type panel struct {
	Key    string // of the data
	Title  string // unless the data gives one
	YLabel string
	YMin   float64
	YMax   float64
	YTicks []float64
	Want   float64 // a line to be above or below; 0 for none
	Said   string  // beside it
}

// Kinds of a series besides a line with marks.
const (
	marks  = "marks"  // alone
	ground = "ground" // a grey line behind
)

type style struct {
	Key   string
	Kind  string
	Color int // of the palette
	Mark  int // circle, square, triangle, diamond
	Dash  bool
}

func specs() (out []spec, err error) {
	d := yaml.NewDecoder(bytes.NewReader(specsYAML))
	d.KnownFields(true)
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("specs.yaml: %w", err)
	}
	return out, nil
}
