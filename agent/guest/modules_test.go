package guest

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// signed is a module with a signature of n bytes that says it has length.
func signed(code string, n int, length uint32) []byte {
	b := append([]byte(code), strings.Repeat("s", n)...)
	b = append(b, make([]byte, signatureInfo-4)...)
	return append(binary.BigEndian.AppendUint32(b, length), signatureMark...)
}

func TestUnsigned(t *testing.T) {
	for name, c := range map[string]struct{ in, want []byte }{
		"signed":          {signed("code", 400, 400), []byte("code")},
		"not signed":      {[]byte("code"), []byte("code")},
		"nothing":         {nil, nil},
		"only a mark":     {[]byte(signatureMark), []byte(signatureMark)},
		"a length beyond": {signed("code", 400, 405), signed("code", 400, 405)},
		"a length of all": {signed("code", 400, 404), []byte{}},
	} {
		if got := unsigned(c.in); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzUnsigned(f *testing.F) {
	f.Add(signed("code", 10, 10))
	f.Add(signed("", 0, 1<<32-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := unsigned(b); !bytes.HasPrefix(b, got) {
			t.Errorf("%q of %q", got, b)
		}
	})
}
