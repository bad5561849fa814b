package plot

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"tare/analyse/stat"
	"tare/report/words"
)

//go:embed index.html
var indexPage string

// chapter is a workload's graphs on the index page.
type chapter struct {
	Title   string
	ID      string
	Figures []indexed
}

type indexed struct {
	File
	ID      string
	Picture bool // that a page can show
	Caption string
	Sub     string
	Rows    []indexRow
}

// indexRow is one cell; Ratio is the one that a cost was made of, "" elsewhere.
type indexRow struct{ Place, Value, Ratio string }

// index writes the page of all graphs. It needs nothing but the graphs beside it.
func index(w io.Writer, figs []Figure, files []File, src Source) error {
	page := struct {
		Study, About, Compare, Baseline, Tare string
		Trials                                int
		Modelled                              string
		Sections                              []chapter
	}{Study: src.Result.Study, Compare: src.Result.Compare, Baseline: src.Result.Baseline, Tare: src.Tare, Trials: src.Result.Trials}
	if src.Result.Modelled {
		page.Modelled = words.ModelledAbout
	}
	if src.Study != nil {
		page.About = src.Study.About
	}
	at := make(map[string]int)
	for i := range figs {
		f := &figs[i]
		title := cmp.Or(f.Workload, "Several workloads")
		k, ok := at[title]
		if !ok {
			k = len(page.Sections)
			at[title] = k
			page.Sections = append(page.Sections, chapter{Title: printable(title), ID: "s-" + f.Name})
		}
		x := indexed{File: files[i], ID: f.Name, Picture: !strings.HasSuffix(files[i].File, ".pdf"), Caption: f.Caption, Sub: f.Subtitle}
		for j := range f.Marks {
			m := &f.Marks[j]
			row := indexRow{Place: printable(f.place(m)), Value: printable(f.spoken(m))}
			if f.Value == Cost && m.Gap == "" && !m.Baseline {
				ratio, _, _ := stat.Estimate{Ratio: m.Value}.Cost(m.Response.Better) // the inverse of an inverse
				row.Ratio = "ratio " + words.Ratio(ratio)
			}
			x.Rows = append(x.Rows, row)
		}
		page.Sections[k].Figures = append(page.Sections[k].Figures, x)
	}
	t, err := template.New("index").Parse(indexPage)
	if err != nil {
		return err
	}
	return t.Execute(w, page)
}
