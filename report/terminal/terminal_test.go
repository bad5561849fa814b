package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What each kind of character becomes.
func shown() map[string]string {
	return map[string]string{
		"plain, ä, 日本, ▲, 5 %":   "plain, ä, 日本, ▲, 5 %",
		"\x1b[2J":                `\x1b[2J`,
		"a\x07\x08\x7f":          `a\a\b\x7f`,
		"\u009b31m\u0085":        `\u009b31m\u0085`,
		"x\u202eexe.txt\u2066":   `x\u202eexe.txt\u2066`,
		"a\rb":                   `a\rb`,
		"\xff\xc3":               `\xff\xc3`,
		"\u2028\u200b\U000e0041": `\u2028\u200b\U000e0041`,
		"\ufffd":                 "\ufffd",
		"":                       "",
	}
}

func TestText(t *testing.T) {
	for in, want := range shown() {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
		var b strings.Builder
		w := New(&b)
		if n, err := w.Write([]byte(in)); n != len(in) || err != nil || w.Flush() != nil || b.String() != want {
			t.Errorf("Write(%q): %q, %d, %v", in, &b, n, err)
		}
	}
	if got := Text("a\tb\r\nc\n"); got != "a\tb\nc\n" {
		t.Errorf("%q", got)
	}
	if got := Line("a\tb\r\nc\n\rd"); got != `a b c \rd` {
		t.Errorf("%q", got)
	}
}

func TestMessage(t *testing.T) {
	if got := Message("it failed: \ntare: done\r\n\x1b[2Jx\n"); got != "it failed: \n  tare: done\n  "+`\x1b[2Jx` {
		t.Errorf("%q", got)
	}
	long := Message(strings.Repeat("x", 1<<20) + "\n" + strings.Repeat("line\n", 1<<20))
	if len(long) > 2*maxLine || !strings.HasSuffix(long, "\n  and 1048537 more lines") {
		t.Errorf("%d bytes, ending with %q", len(long), long[len(long)-40:])
	}
	list := Lines(strings.Split(strings.Repeat("x\ny,", 60_000), ","))
	if n := strings.Count(list, "\n"); n != maxLines || !strings.HasPrefix(list, "x y\nx y\n") || !strings.HasSuffix(list, "\nand 59961 more") {
		t.Errorf("%d lines: %q", n, list[len(list)-40:])
	}
	if got := Cut("äöü", 3); got != "ä... [cut: 4 more bytes]" {
		t.Errorf("%q", got)
	}
}

// TestInkCannotBeForged: the Writer turns its own marks into colours. If data has such colour
// sequences or marks of another Writer, it shows them as text.
func TestInkCannotBeForged(t *testing.T) {
	var b strings.Builder
	w := New(&b)
	if _, err := w.Write([]byte(w.Ink().Paint("worse", 1, 31) + "\x1b[1;31mforged\x1b[0m" + New(&b).Ink().Paint("other", 32))); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if !strings.HasPrefix(got, "\x1b[1;31mworse\x1b[0m"+`\x1b[1;31mforged\x1b[0m\x1b[`) || strings.Count(got, "\x1b") != 2 {
		t.Errorf("%q", got)
	}
	if strings.Contains(got, w.mark2()) {
		t.Error("the Writer's own mark was printed")
	}
	// A mark holds a style, and no other sequence.
	b.Reset()
	if _, err := w.Write([]byte(w.Ink().mark + "2J" + w.Ink().mark + strings.Repeat("1;", 20) + "m\n")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("%q", b.String())
	}
	if got := (Ink{}).Paint("plain", 31); got != "plain" {
		t.Errorf("%q", got)
	}
}

func (w *Writer) mark2() string { return strings.TrimPrefix(string(w.mark), csi) }

func TestRewrite(t *testing.T) {
	var b strings.Builder
	w := New(&b)
	w.Rewrite("3 done: x\n\x1b[2J")
	w.Rewrite("")
	if want := erase + `3 done: x \x1b[2J` + erase; b.String() != want {
		t.Errorf("%q", b.String())
	}
	if got := fit("abcdef", 4) + fit("日本語", 4) + fit("ab", 4); got != "abcd日本ab" {
		t.Errorf("%q", got)
	}
}

// TestRedraw: a table takes the place of the last one, and data in it cannot leave it.
func TestRedraw(t *testing.T) {
	var b strings.Builder
	w := New(&b)
	w.Redraw("a", w.Ink().Paint("b", 31), "c\x1b[2J")
	w.Redraw("d")
	w.Redraw()
	want := "\r\x1b[J" + "a\n\x1b[31mb\x1b[0m\n" + `c\x1b[2J` + "\r\x1b[2A\x1b[J" + "d" + "\r\x1b[J"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestJSON: a reader gets back what was written, and nothing controls a terminal.
func TestJSON(t *testing.T) {
	for in := range shown() {
		var b bytes.Buffer
		if err := JSON(&b).Encode(map[string]string{in: in}); err != nil {
			t.Fatal(err)
		}
		safe(t, b.String())
		var back map[string]string
		in = strings.ToValidUTF8(strings.ReplaceAll(in, "\xff\xc3", "\ufffd\ufffd"), "\ufffd")
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back[in] != in {
			t.Errorf("%q became %q: %v", in, &b, err)
		}
	}
}

func safe(t *testing.T, s string) {
	t.Helper()
	for i, r := range s {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			t.Fatalf("byte %d of %q is %q", i, s, r)
		}
	}
	if !utf8.ValidString(s) {
		t.Fatalf("%q is not UTF-8", s)
	}
}

// FuzzWriter: whatever the data is and however it is split, the Writer prints the result of
// Text, apart from marks.
func FuzzWriter(f *testing.F) {
	for in := range shown() {
		f.Add(in+"\x1b[", in, 3)
	}
	f.Fuzz(func(t *testing.T, a, b string, cut int) {
		var out strings.Builder
		w := New(&out)
		whole := a + w.Ink().Paint("x", 31) + b
		cut = max(0, min(cut, len(whole)))
		for _, p := range []string{whole[:cut], whole[cut:]} {
			if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		const mark = "\x1b[31mx\x1b[0m"
		// The Writer shows the \r of \r\n, which Text leaves out.
		before, after, ok := strings.Cut(out.String(), mark)
		if !ok {
			t.Fatalf("%q has no mark", out.String())
		}
		safe(t, before)
		safe(t, after)
		safe(t, Text(a))
		safe(t, Line(a))
		safe(t, Message(a))
		if strings.Contains(Line(a), "\n") {
			t.Fatalf("%q has lines", Line(a))
		}
		if want := Text(a); strings.ReplaceAll(before, `\r`+"\n", "\n") != want && !strings.Contains(a, `\r`) {
			t.Fatalf("%q became %q, want %q", a, before, want)
		}
	})
}
