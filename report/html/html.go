// Package html writes a report as one HTML file that needs no network: style,
// script, chart library and data are in it.
//
// The data path: 1. a document.Document becomes JSON, gzip and base64, streamed
// from one into the next; 2. the assets are joined: report.css, and the scripts
// that order.txt names; 3. template.html takes both, the answer in words, and the
// sections (package section) for browsers without scripts; 4. in the browser,
// data.js unpacks the data, blocks.js shows sections as they are, and the other
// scripts add what a page alone can do. A live page has no data in it: it fetches
// them from the server (package serve) that it names.
//
// The same document gives the same bytes.
package html

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"reflect"
	"strings"

	"github.com/klauspost/compress/gzip"

	"tare/report/document"
	"tare/report/section"
	"tare/report/terminal"
	"tare/report/words"
)

//go:embed assets
var assets embed.FS

// page is what template.html shows.
type page struct {
	Title    string
	Modelled string // of figures that no machine measured: that they are; else ""
	Answer   []document.Sentence
	Plain    []*section.Section
	CSS      template.CSS
	JS       template.JS
	Policy   string        // of scripts: the hash of JS
	Data     template.HTML // base64: nothing in it means anything to HTML
	Live     string        // URL of the server's folder, ending in a slash; "" in a file
}

// Write writes a document as one HTML file.
func Write(w io.Writer, d *document.Document) error {
	p, err := newPage(d)
	if err != nil {
		return err
	}
	p.Plain = d.Plain
	var data strings.Builder
	b64 := base64.NewEncoder(base64.StdEncoding, &data)
	if err := Encode(b64, d); err != nil {
		return err
	}
	if err := b64.Close(); err != nil {
		return err
	}
	p.Data = template.HTML(data.String()) //nolint:gosec // base64
	return p.write(w)
}

// WriteLive writes the page that fetches its document from URL and follows it.
// Of d, only what the page shows before that is used: Study.Name, Answer and Modelled.
func WriteLive(w io.Writer, d *document.Document, url string) error {
	p, err := newPage(d)
	if err != nil {
		return err
	}
	p.Live = url
	return p.write(w)
}

// Encode writes the document as JSON in gzip, as it is in the file and on the
// wire.
func Encode(w io.Writer, d *document.Document) error {
	z, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false) // it is never in HTML as it is
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("the report's data: %w", err)
	}
	return z.Close()
}

func newPage(d *document.Document) (*page, error) {
	css, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return nil, err
	}
	js, err := scripts()
	if err != nil {
		return nil, err
	}
	return &page{Title: cmp.Or(d.Study.Name, "tare"), Modelled: d.Modelled, Answer: d.Answer, CSS: template.CSS(css), JS: template.JS(js), Policy: policy(js)}, nil //nolint:gosec // our own assets
}

func (p *page) write(w io.Writer) error {
	t, err := template.New("template.html").Funcs(template.FuncMap{"first": first, "more": more, "modelled": func() string { return words.Modelled }}).ParseFS(assets, "assets/template.html")
	if err != nil {
		return fmt.Errorf("the report's template: %w", err)
	}
	out := terminal.New(w) // people read a page with cat and less too
	if err := t.Execute(out, p); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// maxPlain bounds the entries of a list and the rows of a table for browsers without
// scripts: they stand uncompressed in the file.
const maxPlain = 200

// first are as many of a list as are shown, and more is how many are not.
func first(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), maxPlain)).Interface()
}

func more(list any) int { return max(0, reflect.ValueOf(list).Len()-maxPlain) }

// scripts joins the scripts in the order of order.txt; a line that begins with #
// is a comment.
func scripts() (string, error) {
	order, err := assets.ReadFile("assets/order.txt")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for name := range strings.Lines(string(order)) {
		name = strings.TrimSpace(name)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		js, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return "", fmt.Errorf("a script that order.txt names: %w", err)
		}
		b.Write(js)
		b.WriteString("\n;\n") // a part that ends without one must not run into the next
	}
	return b.String(), nil
}

// ScriptPolicy returns the hash of the page's script, as the source list of a
// Content-Security-Policy's script-src has it (https://www.w3.org/TR/CSP3/):
// no other script runs on the page then, wherever it came from. The page itself
// asks for the same.
func ScriptPolicy() (string, error) {
	js, err := scripts()
	if err != nil {
		return "", err
	}
	return policy(js), nil
}

func policy(js string) string {
	sum := sha256.Sum256([]byte(js))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
