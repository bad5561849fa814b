package html_test

import (
	"strings"
	"testing"

	"tare/analyse/advice"
	"tare/report/section"
	"tare/report/words"
)

// TestNewSection: the page shows a section that no script names, with all types of
// blocks, names as text, and a link in the contents.
func TestNewSection(t *testing.T) {
	d := small(t)
	s := &section.Section{ID: "uptime", Title: "How long machines were up", About: "at the first trial"}
	s.Text("A <b>paragraph</b>.")
	tab := section.NewTable(1, "host", "up")
	tab.Row("lab1", "3 h")[1].Second = "± 1 min"
	s.Table(tab)
	s.Blocks = append(s.Blocks, section.Block{Signs: []section.Sign{{Mark: "▲", Text: "better", Tone: words.Better}}},
		section.Block{Entry: &section.Entry{Rule: "wait", Head: "Wait.", Facts: []section.Item{{Lead: "price", Text: "an hour"}}, Patches: []advice.Patch{{For: "shell", File: "a shell", Text: "sleep 3600"}}}})
	s.Note("A note.")
	s.Head("which they are")
	s.Item("lab1", "the first")
	s.Fold("lab2", "the second", "its <output>")
	within := &section.Section{ID: "within", Title: "Within", In: "uptime"}
	within.Text("Told in it.")
	d.Sections = append(d.Sections, within, s, &section.Section{ID: "empty", Title: "Nothing to say"})
	b := browse(t)
	b.show(d, "")
	b.do(`document.querySelector("#uptime details").open = true`)
	b.wait("what is folded", `document.querySelector("#uptime details pre")`)
	text := eval[string](b, `document.getElementById("uptime").innerText`)
	for _, want := range []string{"How long machines were up", "at the first trial", "A <b>paragraph</b>.", "lab1\t3 h ± 1 min", "▲ better", "Wait.", "price: an hour", "sleep 3600", "A note.", "Which they are",
		"lab1: the first", "lab2: the second", "its <output>", "Within\n\nTold in it."} {
		if !strings.Contains(text, want) {
			t.Errorf("the part lacks %q:\n%s", want, text)
		}
	}
	if got := eval[string](b, `[...document.querySelectorAll("nav.parts a")].slice(-2).map((a) => a.textContent).join("|")`); got != "How long machines were up|How each figure is computed" {
		t.Errorf("the contents end with %q", got)
	}
	b.quiet("file://")
}
