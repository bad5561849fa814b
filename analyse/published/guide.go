package published

import (
	"bytes"
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// guideName is the study's word for gVisor's performance guide.
const guideName = "gvisor-guide"

//go:embed gvisor-guide.yaml
var guideYAML []byte

// guide is what the figures share, and which workloads of a study measure each.
type guide struct {
	Title, Ratio, Source, Date string
	Notes, Reasons             []string           // Reasons are those that several figures have
	Figures                    map[string]mapping // by benchmark/case
}

func readGuide() (g guide, err error) {
	d := yaml.NewDecoder(bytes.NewReader(guideYAML))
	d.KnownFields(true)
	if err := d.Decode(&g); err != nil {
		return g, fmt.Errorf("%s.yaml: %w", guideName, err)
	}
	return g, nil
}

// table returns what all its figures share.
func (g *guide) table() *Table {
	return &Table{Name: guideName, Title: g.Title, Ratio: g.Ratio, Source: g.Source, Date: g.Date, Notes: g.Notes}
}

// mapping returns which workloads of a study measure a figure. An unknown figure has an
// empty kind; a test checks that all figures are known.
func (g *guide) mapping(f Figure) mapping { return g.Figures[f.Benchmark+"/"+f.Case] }
