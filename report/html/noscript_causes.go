package html

import (
	"fmt"
	"html/template"
	"strings"

	"tare/analyse/cause"
	"tare/report/document"
	"tare/report/words"
)

// maxFindings and maxAdvice bound what stands uncompressed in the file.
const (
	maxFindings = 100
	maxAdvice   = 20
)

func element(b *strings.Builder, tag, text string) {
	b.WriteString("<" + tag + ">" + template.HTMLEscapeString(text) + "</" + strings.Fields(tag)[0] + ">")
}

// modelled says below a table that no machine measured it.
func modelled(b *strings.Builder, d *document.Document) {
	if d.Modelled != "" {
		element(b, "p", words.Modelled)
	}
}

// causeTables write what bounds each cell whose isolation costs, or looks so.
func causeTables(b *strings.Builder, d *document.Document) {
	if d.Causes == nil {
		return
	}
	element(b, "h3", "Causes")
	element(b, "p", d.Causes.Summary)
	for _, s := range d.Causes.Missing {
		element(b, "p", s)
	}
	rows, costs := 0, 0
	for i := range d.Causes.Findings {
		f := &d.Causes.Findings[i]
		whole := cause.Finding{Cause: f.Cause, Role: f.Role, Among: f.Among, Confidence: f.Confidence}
		if !f.Costs && !f.Suspect {
			continue
		}
		if costs++; costs > maxFindings {
			continue
		}
		if rows++; rows == 1 {
			b.WriteString("<table><thead><tr>")
			for _, h := range []string{"cell", "ratio", "cause", "confidence", "by what"} {
				element(b, `th scope="col"`, h)
			}
			b.WriteString("</tr></thead><tbody>\n")
		}
		ratio := "-"
		if f.Ratio != nil {
			ratio = words.Ratio(*f.Ratio) + " x the " + f.Response
		}
		named := words.Cause(&whole)
		if f.Undecided {
			named = words.NotDecided + ", " + named
		}
		b.WriteString("<tr>")
		element(b, `th scope="row"`, words.Levels(d.Result, d.Cells[f.Cell].Levels, " "))
		for _, s := range []string{ratio, named, words.CauseConfidence(&whole), f.Text} {
			element(b, "td", s)
		}
		b.WriteString("</tr>\n")
	}
	if rows > 0 {
		b.WriteString("</tbody></table>\n")
		modelled(b, d)
	}
	if more := costs - rows; more > 0 {
		fmt.Fprintf(b, "<p>%d more cells: <code>tare report --csv --causes</code> prints them all.</p>\n", more)
	}
}

// adviceList writes what to set, with the patches.
func adviceList(b *strings.Builder, d *document.Document) {
	if len(d.Advice) == 0 {
		return
	}
	element(b, "h3", "What to set")
	for i := range d.Advice[:min(len(d.Advice), maxAdvice)] {
		a := &d.Advice[i]
		element(b, "p", a.For+": "+a.Text)
		for _, g := range words.AdviceGains(d.Result, &a.Item) {
			element(b, "p", g)
		}
		for _, p := range []struct{ head, text string }{{"Not proven here", a.Unproven}, {"Price", a.Price}, {"Warning", a.Warning}} {
			if p.text != "" {
				element(b, "p", p.head+": "+p.text)
			}
		}
		for _, p := range a.Patches {
			element(b, "p", p.File+":")
			if d.Modelled != "" {
				p.Text = words.ModelledPatch + "\n" + p.Text
			}
			element(b, "pre", p.Text)
		}
		modelled(b, d)
	}
	if more := len(d.Advice) - maxAdvice; more > 0 {
		fmt.Fprintf(b, "<p>%d more: <code>tare advise</code> prints them all.</p>\n", more)
	}
}
