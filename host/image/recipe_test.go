package image

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/images"
)

func TestParse(t *testing.T) {
	got, err := Parse("app", "images/app/image.yaml", strings.NewReader(`about: an app
packages: [libc6, g++ | gcc]
only: ['lib*', 'g[+c]*', 'linux-image-?']
programs: [sh, /usr/bin/env]
wheels: [numpy==2.3.4, "six==1.17.0 sha256:`+strings.Repeat("ab", 32)+`", "rich==15.0.0
  sha256:`+strings.Repeat("c", 64)+`
  sha256:`+strings.Repeat("d", 64)+`"]
files:
  - {from: a/b.js, to: /app/b.js, mode: "0755"}
  - {from: c, to: /c}
links: {/usr/bin/x: y}
run: [[ldconfig], [sh, -c, "true"]]
remove: [/usr/share/*]
command: [x]
env: {LANG: C.UTF-8}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Recipe{
		Name: "app", About: "an app", Packages: []string{"libc6", "g++ | gcc"}, Only: []string{"lib*", "g[+c]*", "linux-image-?"}, Programs: []string{"sh", "/usr/bin/env"},
		Wheels: []Wheel{{Name: "numpy", Version: "2.3.4"}, {"six", "1.17.0", []string{strings.Repeat("ab", 32)}}, {"rich", "15.0.0", []string{strings.Repeat("c", 64), strings.Repeat("d", 64)}}},
		Files:  []File{{"a/b.js", "/app/b.js", 0o755}, {"c", "/c", 0o644}},
		Links:  []Link{{"/usr/bin/x", "y"}},
		Run:    [][]string{{"ldconfig"}, {"sh", "-c", "true"}},
		Remove: []string{"/usr/share/*"}, Command: []string{"x"}, Env: map[string]string{"LANG": "C.UTF-8"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParseRefuses: every mistake is told with its place.
func TestParseRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"":                                                     "f:1:1: the file is empty",
		"about: x":                                             "f:1:1: the image would be empty",
		"packages: [sh]":                                       "about: is missing",
		"about: x\npackagse: [a]":                              `f:2:1: unknown field "packagse"; the fields are about, `,
		"about: x\npackages: sh":                               "f:2:11: expected a list",
		"about: x\npackages: [-y]":                             `f:2:12: "-y" is not the name of a Debian package`,
		"about: x\npackages: [aa |bb]":                         `f:2:12: "aa |bb" is not the name of a Debian package`,
		"about: x\npackages: [aa | -y]":                        "is not the name of a Debian package",
		"about: x\npackages: [aa]\nonly: [/x]":                 `f:3:8: "/x" is not a pattern of package names`,
		"about: x\npackages: [aa]\nonly: ['[b-']":              "is not a pattern",
		"about: x\nprograms: [sh]\nonly: [aa]":                 "only: chooses among packages:",
		"about: x\npackages: [aa, aa]":                         "f:2:16: aa is given twice",
		"about: x\nwheels: [numpy]":                            `f:2:10: "numpy" is not a wheel with its version`,
		"about: x\nwheels: [a==1 sha256:ab]":                   "is not a wheel with its version",
		"about: x\nwheels: [--pre==1]":                         "is not a wheel with its version",
		"about: x\nprograms: [-x]":                             "is not a program",
		"about: x\nabout: y":                                   "f:2:1: about: is given twice",
		"about: [x]":                                           "f:1:8: expected a text",
		"about: x\nfiles: [{from: ../a, to: /b}]":              `f:2:16: from: "../a" is not a file beside image.yaml`,
		"about: x\nfiles: [{from: a}]":                         "f:2:9: a file needs from: and to:",
		"about: x\nfiles: [{from: a, to: b}]":                  `f:2:23: "b" is not a clean absolute path`,
		"about: x\nfiles: [{from: a, to: /b/../../c}]":         "is not a clean absolute path",
		"about: x\nfiles: [{from: a, to: /tare}]":              "is reserved for tare",
		"about: x\nfiles: [{from: a, to: /proc/a}]":            "is below a mount point",
		"about: x\nfiles: [{from: a, to: /b, mode: \"4755\"}]": `mode: "4755" is not an octal mode`,
		"about: x\nlinks: {/a: ''}":                            "f:2:13: the link /a has no target",
		"about: x\nremove: ['/a[']":                            "is not a pattern",
		"about: x\nremove: [/]":                                "is not a clean absolute path",
		"about: x\nrun: [[]]":                                  "f:2:7: a command is a list of words",
		"about: x\nenv: {a b: c}":                              `"a b" is not a valid variable name`,
		"about: x\n\tpackages: [a]":                            "f:2:1: ",
		"a: &a [*a]":                                           "f:1:",
		"about: x\nfiles: [{from: a, to: \"/a\\0b\"}]":         "f:2:23: a text cannot contain a zero byte",
	} {
		_, err := Parse("app", "f", strings.NewReader(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", src, err, want)
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Line == 0 {
			t.Errorf("%q: %v has no place", src, err)
		}
	}
	if _, err := Parse("../x", "f", strings.NewReader("about: x\npackages: [aa]")); err == nil {
		t.Error("a folder called ../x was accepted")
	}
	if _, err := Parse("x", "f", strings.NewReader("about: "+strings.Repeat("x", maxRecipe))); err == nil {
		t.Error("a recipe of any length was accepted")
	}
}

// TestShippedRecipes: all of them parse, have their files, and pin their wheels.
func TestShippedRecipes(t *testing.T) {
	b := &Builder{}
	names, err := b.Names()
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, n := range names {
		r, err := b.Recipe(n)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, f := range r.Files {
			if _, err := images.FS.ReadFile(n + "/" + f.From); err != nil {
				t.Errorf("%s: %v", n, err)
			}
		}
		for _, w := range r.Wheels {
			if len(w.SHA256) == 0 {
				t.Errorf("%s: the wheel %s has no sha256: whatever the index serves would run as root", n, w)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	b := &Builder{}
	names, _ := b.Names()
	for _, n := range names {
		if src, err := images.FS.ReadFile(n + "/" + RecipeFile); err == nil {
			f.Add(string(src))
		}
	}
	f.Add("a: &a [*a]")
	f.Add("about: x\nlinks: {/a: b}\nfiles: [{from: a, to: /a}]")
	f.Fuzz(func(t *testing.T, src string) {
		r, err := Parse("app", "f", strings.NewReader(src))
		if err != nil {
			return
		}
		for _, f := range r.Files {
			if badPath(f.To) != "" || f.Mode > 0o777 {
				t.Errorf("the file %+v was accepted", f)
			}
		}
		for _, p := range append(r.Packages, r.Programs...) {
			for name := range strings.SplitSeq(p, " | ") {
				if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \n") {
					t.Errorf("%q would be taken for an option", p)
				}
			}
		}
		for _, w := range r.Wheels {
			if strings.HasPrefix(w.Name, "-") || w.Version == "" {
				t.Errorf("the wheel %+v was accepted", w)
			}
		}
	})
}
