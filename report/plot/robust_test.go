package plot

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"

	"tare/analyse"
	"tare/record"
	"tare/study"
)

func reanalysed(src Source) *analyse.Result {
	return analyse.Analyse(src.Study, src.Trials, src.Result.Skips, analyse.Describe(func(study.Workload) []record.Response {
		return []record.Response{{Name: "rate", Unit: record.PerSecond, Better: record.Higher}, {Name: "latency", Unit: record.Second, Better: record.Lower}}
	}))
}

// labs are studies of every shape that is hard to draw.
func labs() map[string]lab {
	many := func(n int, format string) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(format, i))
		}
		return out
	}
	hostile := sizes()
	hostile.factors = []study.Factor{
		{Name: "sandbox", Levels: []string{"process", `<script>alert("&")</script>`, strings.Repeat("wide ", 300), "a\nb\x00\x1b[31m\u202eevil\xff"}},
		{Name: strings.Repeat("factor&", 40), Levels: []string{"]]>", strings.Repeat("W", 2000), "&amp;"}},
		{Name: "connections", Levels: []string{"-", "日本語"}},
	}
	wide := sizes()
	wide.blocks = 3
	wide.factors = []study.Factor{{Name: "sandbox", Levels: append([]string{"process"}, many(9, "runtime-number-%d")...)}, {Name: "size", Levels: many(25, "level-%d-with-a-name")}, {Name: "connections", Levels: many(2, "%d")}}
	skipped := sizes()
	skipped.skip = func(c record.Cell) string {
		if v, _ := c.Get("sandbox"); v != "process" {
			return "there is no such thing here"
		}
		return ""
	}
	two := sizes()
	two.blocks = 2
	return map[string]lab{"plain": sizes(), "hostile": hostile, "wide": wide, "skipped": skipped, "two blocks": two}
}

// each draws every study in every way.
func each(t *testing.T, do func(t *testing.T, f *Figure, st Style)) {
	for name, l := range labs() {
		src := l.source()
		f1, f2, f3 := l.factors[0].Name, l.factors[1].Name, l.factors[2].Name
		for _, by := range [][]string{nil, {f2, f1, f3}, {f1}, {f3, f2}, {FactorResponse, f1}} {
			for _, kind := range []Graph{Bar, Line, Dot, Heat} {
				for _, v := range []Value{"", Cost} {
					if testing.Short() && (name == "wide" || kind == Dot) {
						continue
					}
					figs, notes, err := Build(src, Options{By: by, Kind: kind, Value: v, Responses: []string{"rate", "latency"}})
					var usage *UsageError
					if errors.As(err, &usage) {
						continue
					}
					if err != nil || len(figs)+len(notes) == 0 {
						t.Fatal(name, by, kind, v, err)
					}
					st := light()
					st.Points = kind == Dot
					if v == Cost {
						st.Width, st.Height = 4*vg.Inch, 3*vg.Inch
					}
					for i := range figs[:min(1, len(figs))] { // the others are like it
						t.Run(fmt.Sprintf("%s %v %s %s %d", name, len(by), kind, v, i), func(t *testing.T) { do(t, &figs[i], st) })
					}
				}
			}
		}
	}
}

func TestNoTextIsCut(t *testing.T) {
	n := 0
	each(t, func(t *testing.T, f *Figure, st Style) {
		d := recordFigure(t, f, st)
		for _, w := range d.texts {
			n++
			for _, c := range w.corners {
				if c.X < -0.5 || c.Y < -0.5 || c.X > d.w+0.5 || c.Y > d.h+0.5 {
					t.Errorf("%q of size %.1f reaches to %.0f,%.0f of a page of %.0f x %.0f", w.text, w.size, c.X, c.Y, d.w, d.h)
					break
				}
			}
		}
		if d.sheet.area.Max.Y-d.sheet.area.Min.Y < 25 || d.sheet.area.Max.X-d.sheet.area.Min.X < 60 {
			t.Errorf("only %v is left for the data", d.sheet.area)
		}
	})
	t.Log(n, "texts")
}

func TestLabelsDoNotOverlap(t *testing.T) {
	each(t, func(t *testing.T, f *Figure, st Style) {
		d := recordFigure(t, f, st)
		var level []written // those that are not turned
		for _, w := range d.texts {
			if w.corners[0].Y == w.corners[1].Y {
				level = append(level, w)
			}
		}
		for i, a := range level {
			for _, b := range level[i+1:] {
				const e = 0.8
				if a.corners[0].X < b.corners[1].X-e && b.corners[0].X < a.corners[1].X-e && a.corners[0].Y < b.corners[2].Y-e && b.corners[0].Y < a.corners[2].Y-e {
					t.Errorf("%q lies over %q", a.text, b.text)
				}
			}
		}
	})
}

func TestSVGIsWhole(t *testing.T) {
	each(t, func(t *testing.T, f *Figure, st Style) {
		var b bytes.Buffer
		if err := render(&b, f, Output{Format: "svg", Style: st}, newFonts()); err != nil {
			t.Fatal(err)
		}
		dec := xml.NewDecoder(bytes.NewReader(b.Bytes()))
		dec.Strict = true
		seen := map[string]int{}
		var title string
		for {
			tok, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok {
				if seen[e.Name.Local]++; e.Name.Local == "title" {
					if err := dec.DecodeElement(&title, &e); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if seen["svg"] != 1 || seen["script"] != 0 || seen["path"] < 5 || seen["text"] < 5 || title != printable(f.Title) {
			t.Error(seen, title)
		}
		if n := bytes.Count(b.Bytes(), []byte(" textLength=")); n != seen["text"] {
			t.Errorf("%d of %d texts say how long they are", n, seen["text"])
		}
		for _, bad := range []string{"NaN", "Inf", "%!"} {
			if bytes.Contains(b.Bytes(), []byte(bad)) {
				t.Error("it has", bad)
			}
		}
	})
}

func TestSameResultsSameBytes(t *testing.T) {
	src := sizes().source()
	for _, format := range []string{"svg", "png", "pdf"} {
		write := func(src Source) map[string][]byte {
			figs := build(t, src, Options{})
			dir := t.TempDir()
			files, err := Write(context.Background(), figs, Output{Dir: dir, Format: format, DPI: 50, Style: light()}, src)
			if err != nil {
				t.Fatal(err)
			}
			out := map[string][]byte{}
			for _, f := range append(files, File{File: "index.html"}) {
				b, err := os.ReadFile(filepath.Join(dir, f.File))
				if err != nil || len(b) == 0 {
					t.Fatal(f.File, err)
				}
				out[f.File] = b
			}
			return out
		}
		a := write(src)
		shuffled := src
		shuffled.Trials = slices.Clone(src.Trials)
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled.Trials), func(i, j int) {
			shuffled.Trials[i], shuffled.Trials[j] = shuffled.Trials[j], shuffled.Trials[i]
		})
		shuffled.Result = reanalysed(shuffled)
		time.Sleep(1100 * time.Millisecond * time.Duration(map[string]int{"pdf": 1}[format])) // its dates have seconds
		b := write(shuffled)
		for name := range a {
			if !bytes.Equal(a[name], b[name]) {
				t.Errorf("%s differs", name)
			}
		}
		if len(a) != 4 {
			t.Errorf("%d files", len(a))
		}
	}
}

func TestIndex(t *testing.T) {
	src := labs()["hostile"].source()
	figs := build(t, src, Options{By: []string{"sandbox"}})
	dir := t.TempDir()
	files, err := Write(context.Background(), figs, Output{Dir: dir, Format: "svg", Style: light()}, src)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, f := range files {
		if !strings.Contains(page, `src="`+f.File+`"`) {
			t.Errorf("the index does not show %s", f.File)
		}
		if _, err := os.Stat(filepath.Join(dir, f.File)); err != nil {
			t.Error(err)
		}
	}
	if strings.Contains(page, "<script") || regexp.MustCompile(`(href|src)="[a-z]+:`).MatchString(page) {
		t.Error("the index has a script, or leads elsewhere")
	}
	if !strings.Contains(page, "&lt;script&gt;") || !strings.Contains(page, `alt="Bar graph.`) {
		t.Error("the index lacks values in words")
	}
}

func TestWriteStopsAndFails(t *testing.T) {
	src := sizes().source()
	figs := build(t, src, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Write(ctx, figs, Output{Dir: t.TempDir(), Format: "svg", Style: light()}, src); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), figs, Output{Dir: file, Format: "svg", Style: light()}, src); err == nil {
		t.Error("a file is taken for a directory")
	}
	if _, err := Write(context.Background(), figs, Output{Dir: t.TempDir(), Format: "bmp", Style: light()}, src); err == nil {
		t.Error("a format that there is not")
	}
	if err := render(io.Discard, &figs[0], Output{Format: "png", DPI: 100000, Style: light()}, newFonts()); err == nil || !strings.Contains(err.Error(), "--dpi") {
		t.Error(err)
	}
}

// 3,000 cells with ten trials each: the figures are printed, not held.
func TestManyCells(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 3,000 cells take seconds")
	}
	l := sizes()
	l.blocks = 10
	l.factors = []study.Factor{{Name: "sandbox", Levels: []string{"process", "runc", "crun", "runsc-systrap", "runsc-kvm"}}}
	for _, f := range []struct {
		name string
		n    int
	}{{"size", 10}, {"connections", 5}, {"cpu-limit", 4}, {"threads", 3}} {
		var levels []string
		for i := range f.n {
			levels = append(levels, fmt.Sprint(1<<i))
		}
		l.factors = append(l.factors, study.Factor{Name: f.name, Levels: levels})
	}
	src := l.source()
	start := time.Now()
	figs := build(t, src, Options{By: []string{"size", "sandbox"}})
	built := time.Since(start)
	files, err := Write(context.Background(), figs, Output{Dir: t.TempDir(), Format: "svg", Style: light()}, src)
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if len(files) != 5*4*3*2 {
		t.Errorf("%d files", len(files))
	}
	t.Logf("%d trials: %d figures in %v, drawn in %v; %d MiB from the system", len(src.Trials), len(files), built, time.Since(start)-built, m.Sys>>20)
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "a\x00b", "\u202e", "\xff\xfe", strings.Repeat("é", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b bytes.Buffer
		if err := xml.EscapeText(&b, []byte(printable(s))); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(clean(s), 0) || bytes.Contains(b.Bytes(), []byte("\uFFFD")) {
			t.Errorf("%q", b.Bytes())
		}
		if n := slug([]string{s, s}, s); len(n) > longest+20 || strings.ContainsAny(n, "/\\\x00") {
			t.Errorf("%q", n)
		}
	})
}
