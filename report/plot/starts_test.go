package plot

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"

	"tare/analyse"
	"tare/record"
)

// podStarts is a study whose pods told how they started.
func podStarts() Source {
	src := ioThreads()
	step := func(name string, ms, lo, hi int, poll time.Duration) analyse.PhaseTime {
		d := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
		return analyse.PhaseTime{Name: name, Trials: 6, Median: d(ms), Lo: d(lo), Hi: d(hi), Poll: poll}
	}
	cell := func(sandbox string) record.Cell { return record.Cell{{Factor: "sandbox", Value: sandbox}} }
	src.Result.Boots = []analyse.Boot{
		{Treatment: "sandbox=pod", Cell: cell("pod"), Starts: 30, Start: 1050 * time.Millisecond, Lo: 900 * time.Millisecond, Hi: 1200 * time.Millisecond,
			Phases: []analyse.PhaseTime{step("schedule", 200, 150, 250, 0), step("sandbox", 500, 450, 550, 300*time.Millisecond), step("pull", 0, 0, 0, 0), step("ready", 300, 250, 350, time.Second)}},
		{Treatment: "sandbox=vm", Cell: cell("vm"), Starts: 12, Start: 2 * time.Second, Phases: []analyse.PhaseTime{step("schedule", 200, 0, 0, 0), step("sandbox", 1800, 0, 0, 300*time.Millisecond), step("pull", 0, 0, 0, 0)}},
	}
	return src
}

// TestStartsOfColdImages: a step that only some starts have is in the right place among the others.
func TestStartsOfColdImages(t *testing.T) {
	src := podStarts()
	src.Result.Boots[1].Phases[2].Median = time.Second
	figs, _, err := Build(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(figs[len(figs)-1].Colour.Levels, " "); got != "schedule sandbox pull ready whole start" {
		t.Error(got)
	}
}

// TestStarts: each step is as long as its median and begins where the one before it ends, and what a kubelet's poll can explain is
// marked. A step that takes no time anywhere has neither a colour nor a key.
func TestStarts(t *testing.T) {
	figs, notes, err := Build(podStarts(), Options{})
	if err != nil {
		t.Fatal(err, notes)
	}
	f := &figs[len(figs)-1]
	if f.Kind != Starts || f.Name != "starts-steps" || strings.Join(f.Colour.Levels, " ") != "schedule sandbox ready whole start" || len(f.Marks) != 7 {
		t.Fatalf("%+v", f)
	}
	for _, want := range []string{"medians of 12 to 30 starts", "sandbox every 300 ms and ready every 1 s"} {
		if !strings.Contains(f.Caption, want) {
			t.Errorf("the caption lacks %q: %s", want, f.Caption)
		}
	}
	for _, want := range []string{"pod, sandbox: 500 ms (450 ms to 550 ms)", "vm, whole start: 2.00 s (no interval, n 6)"} {
		if !strings.Contains(f.Alt, want) {
			t.Errorf("the words for those who do not see it lack %q: %s", want, f.Alt)
		}
	}
	d := recordFigure(t, f, light())
	area, th := d.sheet.area, light().Theme
	ms := func(x vg.Length) int { // by the axis: its end is 3 % beyond the longest start
		return int(math.Round(float64((x-area.Min.X)/(area.Max.X-area.Min.X)) * 2000 * 1.03))
	}
	bars := func(c color.NRGBA) (out []string) {
		for _, r := range d.fills {
			if r.color == c && r.Min.Y > area.Min.Y && r.Max.Y < area.Max.Y && r.Max.Y-r.Min.Y > 14 {
				out = append(out, fmt.Sprintf("%d to %d", ms(r.Min.X), ms(r.Max.X)))
			}
		}
		return out
	}
	for i, want := range []string{"0 to 200, 0 to 200", "200 to 700, 200 to 500, 200 to 2000, 200 to 500", "700 to 1000, 700 to 1000"} { // the step, then its poll
		if got := strings.Join(bars(th.Colours[i+1]), ", "); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
	}
	if got := strings.Join(bars(th.Faint), ", "); got != "1000 to 1050" {
		t.Errorf("in no step: %s", got)
	}
	for _, theme := range Themes() {
		th, _ := NewTheme(theme)
		for _, format := range []string{"svg", "png", "pdf"} {
			if err := render(new(strings.Builder), f, Output{Format: format, DPI: 50, Style: Style{Theme: th, Width: 3 * vg.Inch, Height: 2.5 * vg.Inch}}, newFonts()); err != nil {
				t.Errorf("%s, %s: %v", theme, format, err)
			}
		}
	}
}

// TestStartsAreOfTheWholeStudy: a choice of figures has no picture of starts, and too many bars are a note.
func TestStartsAreOfTheWholeStudy(t *testing.T) {
	for _, opt := range []Options{{Kind: Bar}, {Value: Cost}, {Responses: []string{"throughput"}}, {By: []string{"io_threads"}}} {
		figs, _, err := Build(podStarts(), opt)
		if err != nil {
			t.Errorf("%+v: %v", opt, err)
		}
		for i := range figs {
			if figs[i].Kind == Starts {
				t.Errorf("%+v: it is drawn", opt)
			}
		}
	}
	src := podStarts()
	for len(src.Result.Boots) <= mostStarts {
		src.Result.Boots = append(src.Result.Boots, src.Result.Boots[0])
	}
	figs, notes, _ := Build(src, Options{})
	if figs[len(figs)-1].Kind == Starts || !strings.Contains(strings.Join(notes, "\n"), "the steps of 61 kinds of starts are not drawn") {
		t.Errorf("%d figures, notes %q", len(figs), notes)
	}
}

// hardStarts is a study of n kinds of starts with all steps of a pod. They scatter, so that their intervals lie over one another.
func hardStarts(n int) Source {
	src := podStarts()
	names := []string{"admit", "schedule", "sandbox", "copy", "pull", "create", "start", "agent", "ready"}
	src.Result.Boots = nil
	for i := range n {
		b := analyse.Boot{Cell: record.Cell{{Factor: "sandbox", Value: fmt.Sprintf("kata-clh-%d", i)}}, Levels: record.Cell{{Factor: "workload", Value: "burst"}, {Factor: "node-fill", Value: "80"}}, Starts: 48, Lo: time.Second, Hi: 9 * time.Second}
		for k, name := range names {
			p := analyse.PhaseTime{Name: name, Trials: 6, Median: time.Duration(100+120*(k+i%3)) * time.Millisecond, Lo: 50 * time.Millisecond, Hi: 4 * time.Second}
			if name == "sandbox" || name == "ready" {
				p.Poll = 300 * time.Millisecond
			}
			b.Start += p.Median
			b.Phases = append(b.Phases, p)
		}
		b.Start += 80 * time.Millisecond
		src.Result.Boots = append(src.Result.Boots, b)
	}
	return src
}

// TestStartsDoNotOverlap: neither words nor whiskers lie on each other, of however many rows, on a small page too.
func TestStartsDoNotOverlap(t *testing.T) {
	for _, n := range []int{1, 2, 6, mostStarts} {
		for _, width := range []vg.Length{3 * vg.Inch, 8 * vg.Inch} {
			for _, theme := range Themes() {
				figs, _, err := Build(hardStarts(n), Options{})
				if err != nil {
					t.Fatal(err)
				}
				th, _ := NewTheme(theme)
				d := recordFigure(t, &figs[len(figs)-1], Style{Theme: th, Width: width, Height: 2.5 * vg.Inch})
				what := fmt.Sprintf("%d rows, %.0f wide, %s", n, width, theme)
				for i, a := range d.texts {
					if a.corners[0].X < 0 || a.corners[0].Y < 0 || a.corners[2].X > d.w || a.corners[2].Y > d.h {
						t.Errorf("%s: %q is cut", what, a.text)
					}
					for _, b := range d.texts[i+1:] {
						const e = 0.8
						if a.corners[0].X < b.corners[1].X-e && b.corners[0].X < a.corners[1].X-e && a.corners[0].Y < b.corners[2].Y-e && b.corners[0].Y < a.corners[2].Y-e {
							t.Errorf("%s: %q lies over %q", what, a.text, b.text)
						}
					}
				}
				whiskers := d.lying()
				if len(whiskers) < 2*n {
					t.Errorf("%s: only %d whiskers", what, len(whiskers))
				}
				for i, a := range whiskers {
					if a.Max.X > d.sheet.area.Max.X {
						t.Fatalf("%s: the whisker at %v ends beyond the axis", what, a)
					}
					for _, b := range whiskers[i+1:] {
						if a.Min.X < b.Max.X && b.Min.X < a.Max.X && max(a.Min.Y-b.Min.Y, b.Min.Y-a.Min.Y) < 4 {
							t.Fatalf("%s: the whisker at %v lies on that at %v", what, a, b)
						}
					}
				}
			}
		}
	}
}

// lying are the whiskers within the area: level lines of their width.
func (d *drawn) lying() (out []vg.Rectangle) {
	for _, s := range d.strokes {
		if len(s.path) == 2 && s.width == 1 && s.path[0].Pos.Y == s.path[1].Pos.Y && s.path[0].Pos.Y > d.sheet.area.Min.Y && s.path[0].Pos.Y < d.sheet.area.Max.Y {
			out = append(out, vg.Rectangle{Min: s.path[0].Pos, Max: s.path[1].Pos})
		}
	}
	return out
}

// TestStepsLookDifferent: hatching is the sign of a poll where there are colours, so a step is not hatched there.
func TestStepsLookDifferent(t *testing.T) {
	figs, _, err := Build(hardStarts(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &figs[len(figs)-1]
	for _, theme := range Themes() {
		th, _ := NewTheme(theme)
		s := newSheet(f, Style{Theme: th}, newFonts())
		seen := make(map[string]string)
		for i, name := range f.Colour.Levels[:len(f.Colour.Levels)-1] {
			fill, p := s.stepLook(i)
			look := fmt.Sprint(fill, p)
			if seen[look] != "" || p != plain && !th.Shaded {
				t.Errorf("%s: %s has hatching %d, and the look of %q", theme, name, p, seen[look])
			}
			seen[look] = name
		}
	}
}
