package advice

import (
	"fmt"
	"slices"
	"strings"
	"text/template"

	"tare/analyse/merit"
	"tare/record"
)

// PatchesOf returns what sets a level of a factor in a sandbox of that family, or nil without a rule. The cell has the levels beside it.
func PatchesOf(factor, level string, family record.Family, cell record.Cell) []Patch {
	for _, f := range loaded().Factors {
		if f.Name == factor {
			out, err := f.fill(level, family, cell)
			if err != nil {
				return nil // the templates are checked when they are read
			}
			return out
		}
	}
	return nil
}

// CareOf says what to know before levels are set, such as "overlay2 all:memory: nothing ...". Most levels need no care.
func CareOf(levels record.Cell) (out []string) {
	for _, l := range levels {
		for _, f := range loaded().Factors {
			i := slices.IndexFunc(f.Care, func(c Care) bool { return f.Name == l.Factor && strings.HasPrefix(l.Value, c.Begins) })
			if i >= 0 {
				out = append(out, l.Factor+" "+l.Value+": "+f.Care[i].Text)
			}
		}
	}
	return out
}

// Careful puts what CareOf says into the patches, as comments, so that they say so wherever they are copied to.
func Careful(patches []Patch, care []string) []Patch {
	out := slices.Clone(patches)
	for i := range out {
		for _, c := range slices.Backward(care) {
			out[i].Text = "# take care: " + c + "\n" + out[i].Text
		}
	}
	return out
}

// Join makes one patch of those that go into the same file, in the order of the first of each. Manifests are merged by their keys. A command
// keeps the words that both begin and end with; another text of several lines keeps the lines that both begin with, so keys of TOML stay where they belong.
func Join(patches []Patch) []Patch {
	var out []Patch
	for _, p := range patches {
		i := slices.IndexFunc(out, func(o Patch) bool { return o.For == p.For && o.File == p.File })
		if i < 0 {
			out = append(out, p)
			continue
		}
		if p.For == "pod" || p.For == "kubevirt" {
			if text, _, err := mergeYAML([]string{out[i].Text, p.Text}); err == nil { // a test merges all pairs
				out[i].Text = text
				continue
			}
		}
		separator := "\n"
		a, b := strings.TrimSuffix(out[i].Text, "\n"), strings.TrimSuffix(p.Text, "\n")
		if p.For == "shell" && !strings.Contains(a+b, "\n") {
			separator = " "
		}
		parts := join(strings.Split(a, separator), strings.Split(b, separator), separator == " ")
		out[i].Text = strings.Join(parts, separator) + strings.Repeat("\n", len(out[i].Text)-len(a))
	}
	return out
}

// join is what both begin with, the rest of each, and, if ends is true, what both end with.
func join(a, b []string, ends bool) []string {
	begin, end, most := 0, 0, min(len(a), len(b))
	for begin < most && a[begin] == b[begin] {
		begin++
	}
	for ends && end < most-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return slices.Concat(a[:len(a)-end], b[begin:])
}

func (f *Factor) fill(level string, family record.Family, cell record.Cell) ([]Patch, error) {
	data := struct{ Level, Queues string }{level, level}
	if n, _ := cell.Get(factorDiskQueues); merit.Number(n) > 0 {
		data.Queues = n
	}
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
		if err := t.Execute(&b, data); err != nil {
			return nil, err
		}
		out = append(out, Patch{For: p.For, File: p.File, Text: b.String()})
	}
	return out, nil
}
