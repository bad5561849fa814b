package vm

import (
	"net"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestPanicIsFound: also when so much follows that the tail has lost it, and when it
// comes in pieces.
func TestPanicIsFound(t *testing.T) {
	ours, theirs := net.Pipe()
	c := listen(ours)
	for _, piece := range []string{
		"[    2.1] sysrq: Trigger a crash\r\n[    2.2] Kernel pa", "nic - not syncing: sysrq trig", "gered crash\r\n", strings.Repeat("[    2.3] RAX: 0\r\n", 1000),
		"[    2.4] Kernel panic - not syncing: another\n",
	} {
		if _, err := theirs.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	_ = theirs.Close()
	c.close()
	if got := c.panic.rest(); got != "sysrq triggered crash" {
		t.Errorf("%q", got)
	}
	err := c.explain(net.ErrClosed, true)
	if s := err.Error(); !strings.HasPrefix(s, "the guest's kernel panicked (sysrq triggered crash): ") || len(s) > 4<<10 {
		t.Error(s)
	}
}

func TestLinesAroundAPanic(t *testing.T) {
	lines := strings.Split(strings.Repeat("a ", 20)+"1 2 3 Kernel panic - not syncing: b"+strings.Repeat(" c", 20), " ")
	if got := around(lines, "panic"); len(got) != mostLines || got[3] != "panic" {
		t.Errorf("%q", got)
	}
	if got := around(lines, "nothing"); len(got) != mostLines || got[0] != "c" {
		t.Errorf("%q", got)
	}
	if got := around(lines[:2], "nothing"); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func FuzzConsole(f *testing.F) {
	f.Add("[    1.2] Kernel panic - not syncing: No working init found.\r\n\x1b[0;31mred\x1b[0m\n", 7)
	f.Add("\xff\x00"+panicked, 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		for _, l := range printable(text) {
			if l == "" || len(l) > mostWidth+3 || !utf8.ValidString(l) || strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("%q", l)
			}
		}
		whole, parts := finder{word: panicked}, finder{word: panicked}
		whole.write([]byte(text))
		at = min(max(at, 0), len(text))
		parts.write([]byte(text[:at]))
		parts.write([]byte(text[at:]))
		if whole.rest() != parts.rest() {
			t.Errorf("%q in one, %q in two", whole.rest(), parts.rest())
		}
	})
}
