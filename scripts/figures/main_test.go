package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const images = "../../docs/img"

// TestFiguresAreDrawn: the pictures that are committed are of the data that is
// committed beside them, and whole.
func TestFiguresAreDrawn(t *testing.T) {
	var page []byte
	for _, name := range []string{"method.md", "method/machines.md", "cause.md", "economy.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	all, err := specs()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		got, err := f.render(images)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(images, f.Name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s.svg is not what its data gives; run `go run ./scripts/figures`", f.Name)
		}
		if !bytes.Contains(page, []byte("img/"+f.Name+".svg)")) {
			t.Errorf("none of docs/method.md, docs/method/machines.md, docs/cause.md and docs/economy.md shows %s.svg", f.Name)
		}
		text := words(t, got)
		for _, s := range f.Series {
			if !strings.Contains(text, s.Key) {
				t.Errorf("%s.svg does not say %q", f.Name, s.Key)
			}
		}
	}
	files, err := filepath.Glob(images + "/method-*")
	if err != nil || len(files) != 2*len(all) {
		t.Errorf("%d files in docs/img for %d figures (%v)", len(files), len(all), err)
	}
}

// words are the letters of a picture, which must be XML.
func words(t *testing.T, svg []byte) string {
	t.Helper()
	var out strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := tok.(xml.CharData); ok {
			out.Write(c)
		}
	}
}

// TestFiguresShowTheData: another value gives another picture; what is missing or
// no number is an error.
func TestFiguresShowTheData(t *testing.T) {
	all, err := specs()
	if err != nil {
		t.Fatal(err)
	}
	f := all[2]
	raw, err := os.ReadFile(filepath.Join(images, f.Name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	points, err := read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	one, err := f.draw(points)
	if err != nil {
		t.Fatal(err)
	}
	points[0].y++
	two, err := f.draw(points)
	if err != nil || bytes.Equal(one, two) {
		t.Errorf("another value does not change the picture (%v)", err)
	}
	if _, err := f.draw(points[:6]); err == nil {
		t.Error("a series without data is no error")
	}
	for _, bad := range []string{"a\n1\n", "panel,series,x,y\na,b,c,1\n", "panel,series,x,y\na,b,1,\n", "a,\"b\nc"} {
		if _, err := read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
