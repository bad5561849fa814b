package output

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n += len(p)
	return len(p), nil
}

func TestRead(t *testing.T) {
	if b, err := Read(strings.NewReader("x\n")); err != nil || string(b) != "x\n" {
		t.Errorf("Read = %q, %v", b, err)
	}
	for _, s := range []string{"", " \n\t\n"} {
		if _, err := Read(strings.NewReader(s)); !errors.Is(err, ErrEmpty) {
			t.Errorf("Read(%q) = %v, want ErrEmpty", s, err)
		}
	}
	e := &endless{}
	if _, err := Read(e); !errors.Is(err, ErrTooLong) {
		t.Errorf("an endless output gives %v, want ErrTooLong", err)
	}
	if e.n > 2*Limit {
		t.Errorf("Read took %d bytes of an endless output, the bound is %d", e.n, Limit)
	}
	broken := errors.New("pipe broke")
	if _, err := Read(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a read error gives %v, want it wrapped", err)
	}
}
