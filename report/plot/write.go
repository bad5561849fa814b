package plot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"tare/record"
)

// Output says where figures go, and in which form.
type Output struct {
	Dir    string
	Format string // svg, png or pdf
	DPI    int    // of png
	Style  Style
	// Progress is called after each figure, from one goroutine at a time; nil for
	// none.
	Progress func(done, all int)
}

// File says what one written file shows.
type File struct {
	File     string      `json:"file"` // name within the directory
	Title    string      `json:"title"`
	Workload string      `json:"workload,omitempty"`
	Response string      `json:"response,omitempty"`
	Unit     record.Unit `json:"unit,omitempty"`
	Kind     Graph       `json:"kind"`
	Value    Value       `json:"value"`
	X        string      `json:"x"`
	Colour   string      `json:"colour,omitempty"`
	Hatching string      `json:"hatching,omitempty"`
	Fixed    record.Cell `json:"fixed,omitempty"`
	Cells    int         `json:"cells"`
	Gaps     int         `json:"gaps,omitempty"` // cells without a value
	Modelled bool        `json:"modelled,omitempty"`
	Alt      string      `json:"alt"` // what it shows, in words
}

// Write draws all figures into a directory, which it makes, as many at once as
// there are processors, and writes index.html. A file is there whole or not at
// all. Other files in the directory stay as they are; Others lists them.
func Write(ctx context.Context, figs []Figure, out Output, src Source) ([]File, error) {
	if err := os.MkdirAll(out.Dir, 0o755); err != nil { //nolint:gosec // results are meant to be read by others
		return nil, fmt.Errorf("cannot create a directory for the graphs: %w", err)
	}
	fonts := newFonts()
	next := make(chan int)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		done   int
		failed error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range min(runtime.GOMAXPROCS(0), len(figs)) {
		wg.Go(func() {
			var buf bytes.Buffer // kept: figures of a study are of like size
			for i := range next {
				buf.Reset()
				err := render(&buf, &figs[i], out, fonts)
				if err == nil {
					err = replace(filepath.Join(out.Dir, figs[i].file(out.Format)), buf.Bytes())
				}
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", figs[i].Title, err))
					cancel()
				}
				if done++; out.Progress != nil && failed == nil {
					out.Progress(done, len(figs))
				}
				mu.Unlock()
			}
		})
	}
feed:
	for i := range figs {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if failed != nil {
		return nil, failed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	files := make([]File, len(figs))
	for i := range figs {
		files[i] = figs[i].entry(out.Format)
	}
	var page bytes.Buffer
	if err := index(&page, figs, files, src); err != nil {
		return nil, fmt.Errorf("cannot make the index page: %w", err)
	}
	return files, replace(filepath.Join(out.Dir, "index.html"), page.Bytes())
}

// Others lists the pictures in a directory that a call of Write did not write, by
// name: of earlier calls, or the user's own. Nothing tells which, so they stay.
func Others(dir string, files []File) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for other graphs: %w", err)
	}
	ours := make(map[string]bool, len(files))
	for i := range files {
		ours[files[i].File] = true
	}
	var out []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".svg", ".png", ".pdf":
			if !ours[e.Name()] && !e.IsDir() {
				out = append(out, e.Name())
			}
		}
	}
	return out, nil
}

func (f *Figure) file(format string) string { return f.Name + "." + format }

func (f *Figure) entry(format string) File {
	e := File{File: f.file(format), Title: f.Title, Workload: f.Workload, Response: f.Response.Name, Unit: f.Response.Unit, Kind: f.Kind, Value: f.Value,
		X: f.X.Factor, Colour: f.Colour.Factor, Hatching: f.Hatch.Factor, Fixed: f.Fixed, Cells: len(f.Marks), Alt: f.Alt, Modelled: f.Modelled}
	for i := range f.Marks {
		if f.Marks[i].Gap != "" {
			e.Gaps++
		}
	}
	return e
}

// replace writes a file by renaming. Readers of an older version keep theirs.
func replace(path string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".plot-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already when all went well
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// render draws one figure: format is svg, png (with dpi pixels an inch) or pdf.
// The same figure gives the same bytes.
func render(w io.Writer, f *Figure, out Output, fonts text.Handler) error {
	s := newSheet(f, out.Style, fonts)
	s.noBold = out.Format == "pdf"
	width, height := s.size()
	switch out.Format {
	case "svg":
		return renderSVG(w, s, width, height)
	case "png":
		return renderPNG(w, s, width, height, out.DPI)
	case "pdf":
		return renderPDF(w, s, width, height)
	}
	return fmt.Errorf("there is no format %q; write svg, png or pdf", out.Format)
}

// mostPixels bounds a picture's memory: 400 MB with four bytes a pixel.
const mostPixels = 100_000_000

func pixels(w, h vg.Length, dpi int) float64 {
	return w.Dots(float64(dpi)) * h.Dots(float64(dpi))
}
