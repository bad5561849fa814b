package study

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/record"
)

// MaxFile bounds a file that a parameter names, in bytes: a study is read into
// memory and stored with its results, files and all.
const MaxFile = 256 << 10

// filesOf reads the section files: the texts of files that the study carries
// itself, by path.
func (d *draft) filesOf(p pair) {
	for _, q := range d.entries(d.mapping(p.val, "files"), "files") {
		switch {
		case q.val.Kind != yaml.ScalarNode:
			d.bad(q.val, "write the file's text, as a block after |", "the file %q is a list or a mapping", q.key.Value)
		case len(q.val.Value) > MaxFile:
			d.bad(q.val, fmt.Sprintf("a file has at most %s", param.FormatSize(MaxFile)), "the file %q has %d bytes", q.key.Value, len(q.val.Value))
		default:
			d.texts[q.key.Value] = q.val.Value
			d.carries = true
		}
	}
}

// fileOf finds the text of a file that a parameter names, once.
func (d *draft) fileOf(n *yaml.Node, p param.Param, path string) bool {
	if path == "" {
		return true
	}
	if text, ok := d.texts[path]; ok {
		return d.keep(n, p, path, text)
	}
	switch {
	case d.carries:
		d.bad(n, "add it there, or remove the section files", "%s: the section files has no %q", p.Name, path)
		return false
	case d.cat.ReadFile == nil:
		d.bad(n, "put its text into the section files", "%s: the file %q cannot be read here", p.Name, path)
		return false
	case len(path) > maxKey:
		d.bad(n, fmt.Sprintf("a path has at most %d bytes", maxKey), "%s: the path is %d bytes long", p.Name, len(path))
		return false
	}
	text, err := d.cat.ReadFile(path)
	if err != nil {
		d.refuse(n, p.Name+": ", err, "write the path of a file, relative to the study file")
		return false
	}
	return d.isText(n, p, path, text) && d.keep(n, p, path, string(text))
}

// isText refuses what no parameter's file can be.
func (d *draft) isText(n *yaml.Node, p param.Param, path string, text []byte) bool {
	switch {
	case len(text) > MaxFile:
		d.bad(n, fmt.Sprintf("a file has at most %s", param.FormatSize(MaxFile)), "%s: the file %q is too large", p.Name, path)
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		d.bad(n, "name a text file in UTF-8", "%s: the file %q is not text", p.Name, path)
	default:
		return true
	}
	return false
}

// maxNamed bounds the files that a file names.
const maxNamed = 64

// bundled finds the files that a parameter's file names. One that is nowhere is left out: the workload says at which place it is
// named.
func (d *draft) bundled(n *yaml.Node, p param.Param, path, text string) (map[string]string, bool) {
	all := p.Names(text)
	if len(all) > maxNamed {
		d.bad(n, fmt.Sprintf("make several of it, each with at most %d", maxNamed), "%s: the file %q names %d files", p.Name, path, len(all))
		return nil, false
	}
	out := map[string]string{}
	for _, f := range all {
		for _, place := range f.Places {
			at := filepath.Join(filepath.Dir(path), place)
			text, ok := d.texts[at]
			if !ok && !d.carries && d.cat.ReadFile != nil && len(at) <= maxKey {
				b, err := d.cat.ReadFile(at)
				if err != nil {
					continue
				}
				if !d.isText(n, p, at, b) {
					return nil, false
				}
				text, ok = string(b), true
			}
			if ok {
				out[f.Name], d.texts[at], d.found[path+"\n"+f.Name] = text, text, at
				break
			}
		}
	}
	return out, true
}

// keep notes a file's text as a parameter's. To a workload the text is the parameter,
// and none is the parameter that is not set: an empty file would run something else.
func (d *draft) keep(n *yaml.Node, p param.Param, path, text string) bool {
	if text == "" {
		d.add1(&Error{File: d.beside(path), Line: 1, Column: 1, What: "the file is empty, and the parameter " + p.Name + " names it",
			Instead: "write what " + p.Name + " needs into it, or remove the parameter"})
		return false
	}
	d.texts[path] = text
	if p.Names != nil {
		files, ok := d.bundled(n, p, path, text)
		if !ok {
			return false
		}
		text = param.Bundle{Text: text, Files: files}.Value()
	}
	d.study.file(p.Name, path, text)
	return true
}

// beside is a path of the study's, for errors: it is relative to the study file.
func (d *draft) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(d.file), path)
}

// file notes a file's text.
func (s *Study) file(param, path, text string) {
	if s.Files == nil {
		s.Files = map[string]map[string]string{}
	}
	if s.Files[param] == nil {
		s.Files[param] = map[string]string{}
	}
	s.Files[param][path] = text
}

// embed puts texts in the place of the paths of files.
func (s *Study) embed(v param.Values) {
	for name, texts := range s.Files {
		if text, ok := texts[v[name]]; ok {
			v[name] = text
		}
	}
}

// inFile reports a mistake in a file by its place there; false when err is none.
func (d *draft) inFile(w *load, cell record.Cell, err error) bool {
	var fe *param.FileError
	if !errors.As(err, &fe) {
		return false
	}
	d.add1(d.placed(w, cell, fe))
	return true
}

// placed is a mistake in a file with the file's name.
func (d *draft) placed(w *load, cell record.Cell, fe *param.FileError) *Error {
	path := w.fixed[fe.Param]
	if l, ok := cell.Get(fe.Param); ok {
		path = l
	}
	if fe.File != "" {
		path = cmp.Or(d.found[path+"\n"+fe.File], fe.File)
	}
	return &Error{File: d.beside(path), Line: fe.Line, Column: fe.Column, What: fe.What, Instead: fe.Instead}
}

// carry writes the files that were read behind the study's text, so that the
// stored study needs nothing else and is the same when they have changed.
func (d *draft) carry() {
	if d.carries || len(d.texts) == 0 {
		return
	}
	section, err := yaml.Marshal(map[string]map[string]string{"files": d.texts})
	if err != nil {
		d.bad(nil, "", "the files that it names cannot be stored: %v", err)
		return
	}
	src := slices.Clip(d.study.Source) // the caller's, whose spare room may hold something else
	if !bytes.HasSuffix(src, []byte("\n")) {
		src = append(src, '\n')
	}
	src = append(src, section...)
	// A study in braces, or with a mark at its end, cannot have a section put behind it.
	var back struct {
		Files map[string]string `yaml:"files"`
	}
	if err := yaml.Unmarshal(src, &back); err != nil || len(back.Files) != len(d.texts) {
		d.bad(nil, "write its outermost keys without braces, one on each line", "the study names files, and a section cannot be put behind its text")
		return
	}
	for path, text := range d.texts {
		if back.Files[path] != text {
			d.bad(nil, "remove control characters from it", "the file %q cannot be stored with the study", path)
			return
		}
	}
	if len(src) > MaxSource {
		d.bad(nil, "name smaller files", "the study and the files that it names are together larger than %s", strings.TrimSpace(param.FormatSize(MaxSource)))
		return
	}
	d.study.Source = src
}
