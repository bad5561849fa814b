package yamlcheck

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are texts that are slow or large to decode.
func hostile() map[string]string {
	var many strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&many, "k%d: 1\n", i)
	}
	return map[string]string{
		"many keys":  many.String(),
		"equal keys": strings.Repeat("a:\n", 30_000),
		"flow":       "{" + strings.Repeat("a: 1, ", 30_000) + "}",
		"nested":     strings.Repeat("[", 100_000),
		"in a list":  "x:\n- y:\n" + strings.Repeat("    a:\n", 30_000),
	}
}

func TestCheck(t *testing.T) {
	for name, text := range hostile() {
		began := time.Now()
		err := Check([]byte(text))
		if err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", name, err)
		}
		if took := time.Since(began); took > 30*time.Second { // quadratic, it would be minutes
			t.Errorf("%s took %v", name, took)
		}
	}
	for text, want := range map[string]string{
		"a: 1\nb: {c: 1, d: [1, 2]}\n---\na: 2\n": "",
		"":                           "",
		"a: 1\nb:\n  c: 1\n  c: 2\n": `line 4: the key "c" is in line 3 already; remove one`,
		"a: [\n":                     "yaml: ",
	} {
		if err := Check([]byte(text)); err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestScalar(t *testing.T) {
	const text = "files:\n  x: |\n    hello\n  y: 1\n  y: 2\nlist: [1]\n"
	for path, want := range map[string]string{"files x": "hello\n", "files y": "", "files": "", "list 0": "", "none x": ""} {
		got, ok := Scalar([]byte(text), strings.Fields(path)...)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", path, got, ok)
		}
	}
	for name, text := range hostile() {
		if got, ok := Scalar([]byte(text), "files", "x"); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, text := range []string{"a: 1\na: 2", "a: &x {b: 1}\nc: *x", "- [{a: b}]\n---\n{}", "? [a]\n: b"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := Check(text); err != nil && len(err.Error()) > 1000 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
		_, _ = Scalar(text, "files", "x")
	})
}
