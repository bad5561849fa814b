package study

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tare/param"
)

// withFile is the catalogue with a workload that reads a file.
func withFile(files map[string]string) Catalogue {
	cat := testCatalogue()
	cat.Workloads["script"] = WorkloadInfo{
		Params: []param.Param{{Name: "script", Type: param.File, Help: "what it does"}},
		Check: func(v param.Values) error {
			if v.Str("script") != "good\n" {
				return fmt.Errorf("script: %w", &param.FileError{Param: "script", Line: 3, Column: 7, What: "it is not good", Instead: "write good"})
			}
			return nil
		},
	}
	cat.ReadFile = func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("there is no file %s; write another", path)
	}
	return cat
}

const withScript = `study: x
factors: {sandbox: [process, runc]}
workloads:
  a: {kind: script, script: a.txt}
`

// A file is read once; the stored study has it inside and needs no other.
func TestFileIsCarried(t *testing.T) {
	cat := withFile(map[string]string{"a.txt": "good\n", "b.txt": "bad", "nul": "\x00", "large": strings.Repeat("x", MaxFile+1)})
	s, err := Parse("dir/one.yaml", []byte(withScript), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	cell := s.Strata[0].Cells[0]
	res, err := s.Resolve(cat, cell)
	if err != nil || res.Params.Str("script") != "good\n" {
		t.Errorf("%q, %v", res.Params, err)
	}
	if got := s.WorkloadOf(0).Params.Str("script"); got != "good\n" {
		t.Errorf("WorkloadOf: %q", got)
	}
	cat.ReadFile = nil
	again, err := Parse("elsewhere.yaml", s.Source, cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(again.Source) != string(s.Source) || again.Strata[0].Cells[0].Key() != cell.Key() {
		t.Errorf("read again it is another study:\n%s", again.Source)
	}
}

func TestFileIsRefused(t *testing.T) {
	cat := withFile(map[string]string{"a.txt": "good\n", "b.txt": "bad", "nul": "\x00", "large": strings.Repeat("x", MaxFile+1), "none": ""})
	for _, c := range []struct{ study, set, want string }{
		{withScript, "a.script=b.txt", "dir/b.txt:3:7: it is not good; write good"},
		{withScript, "a.script=c.txt", "script: there is no file c.txt; write another"},
		{withScript, "a.script=none", "dir/none:1:1: the file is empty, and the parameter script names it; write"},
		{withScript + "files: {a.txt: ''}\n", "", "dir/a.txt:1:1: the file is empty"},
		{withScript, "a.script=nul", `the file "nul" is not text`},
		{withScript, "a.script=large", "is too large; a file has at most 256KiB"},
		{withScript + "files: {b.txt: bad}\n", "", `dir/one.yaml:4:29: script: the section files has no "a.txt"`},
		{withScript + "files: {a.txt: [1]}\n", "", "is a list or a mapping"},
		{"{study: x, factors: {sandbox: [process, runc]}, workloads: {a: {kind: script, script: a.txt}}}", "", "without braces"},
	} {
		var sets []string
		if c.set != "" {
			sets = []string{c.set}
		}
		_, err := Parse("dir/one.yaml", []byte(c.study), cat, sets)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
}

// bundling is the catalogue with a workload whose file names others, one a line: the first of two places counts.
func bundling(files map[string]string) Catalogue {
	cat := withFile(files)
	w := cat.Workloads["script"]
	w.Params[0].Names = func(text string) (out []param.Named) {
		for name := range strings.FieldsSeq(text) {
			out = append(out, param.Named{Name: name, Places: []string{name, "../" + name}})
		}
		return out
	}
	w.Check = func(v param.Values) error {
		b, err := param.ReadBundle(v.Str("script"))
		if err == nil && b.Files["bad"] != "" {
			err = &param.FileError{Param: "script", File: "bad", Line: 2, Column: 3, What: "it is bad"}
		}
		return err
	}
	cat.Workloads["script"] = w
	return cat
}

// Files that a file names are found beside it or elsewhere, and stored with the study. One that is nowhere is the workload's
// matter, and a mistake in one has its path.
func TestFileNamesFiles(t *testing.T) {
	cat := bundling(map[string]string{"sub/a.txt": "x y none", "sub/x": "one", "y": "two", "x": "not this"})
	src := strings.Replace(withScript, "a.txt", "sub/a.txt", 1)
	s, err := Parse("dir/one.yaml", []byte(src), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(s *Study) string { return s.WorkloadOf(0).Params.Str("script") }
	b, err := param.ReadBundle(value(s))
	if err != nil || b.Text != "x y none" || len(b.Files) != 2 || b.Files["x"] != "one" || b.Files["y"] != "two" {
		t.Errorf("%+v, %v", b, err)
	}
	cat.ReadFile = nil
	again, err := Parse("elsewhere.yaml", s.Source, cat, nil)
	if err != nil || value(again) != value(s) {
		t.Errorf("read again: %v\n%s", err, s.Source)
	}
	for text, want := range map[string]string{
		"bad":                    "dir/bad:2:3: it is bad",
		"large":                  `the file "large" is too large`,
		strings.Repeat("x ", 99): "names 99 files; make several of it",
	} {
		cat := bundling(map[string]string{"sub/a.txt": text, "bad": "it", "large": strings.Repeat("x", MaxFile+1)})
		if _, err := Parse("dir/one.yaml", []byte(src), cat, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.9s: %v, want %q", text, err, want)
		}
	}
}
