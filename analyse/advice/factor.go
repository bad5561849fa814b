package advice

import (
	"fmt"
	"slices"
	"strings"
	"text/template"

	"tare/record"
)

// PatchesOf returns what sets a level of a factor in a sandbox of that family, or nil without a rule.
func PatchesOf(factor, level string, family record.Family) []Patch {
	for _, f := range loaded().Factors {
		if f.Name == factor {
			out, err := f.fill(level, family)
			if err != nil {
				return nil // the templates are checked when they are read
			}
			return out
		}
	}
	return nil
}

func (f *Factor) fill(level string, family record.Family) ([]Patch, error) {
	var out []Patch
	for _, p := range f.Patches {
		if !slices.Contains(PatchesFor(), p.For) || p.File == "" {
			return nil, fmt.Errorf("a patch is for %q, file %q: it needs one of %v and a file", p.For, p.File, PatchesFor())
		}
		if len(p.In) > 0 && family != "" && !slices.Contains(p.In, string(family)) {
			continue
		}
		t, err := template.New(f.Name).Parse(p.Text)
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		if err := t.Execute(&b, struct{ Level string }{level}); err != nil {
			return nil, err
		}
		out = append(out, Patch{For: p.For, File: p.File, Text: b.String()})
	}
	return out, nil
}
