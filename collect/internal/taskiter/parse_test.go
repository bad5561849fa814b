package taskiter

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// encode writes records as the program does.
func encode(rs ...Record) []byte {
	var b []byte
	for _, r := range rs {
		tid := uint32(r.Tid)
		if r.Same {
			tid |= short
		}
		b = binary.NativeEndian.AppendUint32(b, tid)
		b = binary.NativeEndian.AppendUint32(b, uint32(r.Pid))
		if r.Same {
			continue
		}
		for _, n := range []uint64{r.Run, r.Wait, r.Start, r.Begun} {
			b = binary.NativeEndian.AppendUint64(b, n)
		}
		b = append(b, r.Comm[:]...)
	}
	return b
}

func TestParse(t *testing.T) {
	in := []Record{
		{Tid: 1, Pid: 1, Run: 1 << 55, Wait: 7, Start: 8, Begun: 9, Comm: [commLen]byte{'i', 'n', 'i', 't'}},
		{Same: true, Tid: 1 << 22, Pid: 5},
		{Tid: 6, Pid: 5, Comm: [commLen]byte([]byte("abcdefghijklmno\x00"))},
	}
	got, err := parse(nil, encode(in...))
	if d := cmp.Diff(in, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	whole := encode(in...)
	for n := range whole {
		rs, err := parse(nil, whole[:n])
		if atEnd := n == 0 || n == recordSize || n == recordSize+shortSize; (err == nil) != atEnd {
			t.Errorf("the first %d bytes: %d records, %v", n, len(rs), err)
		}
	}
	for _, bad := range []Record{{Tid: 0, Pid: 1}, {Tid: 1, Pid: 0}, {Tid: pidLimit + 1, Pid: 1}, {Tid: 1, Pid: pidLimit + 1}} {
		if _, err := parse(nil, encode(bad)); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"sh\x00garbage\x00\x00\x00\x00\x00\x00": "sh", "fifteen letters\x00": "fifteen letters", "sixteen letters.": "sixteen letters.",
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": "", "a\xffb\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": "a?b",
	} {
		comm := [commLen]byte([]byte(in))
		if got := Name(&comm); got != want {
			t.Errorf("Name(%q) = %q", in, got)
		}
	}
}

// FuzzParse: what is accepted is what would be written for it.
func FuzzParse(f *testing.F) {
	f.Add(encode(Record{Tid: 7, Pid: 7, Run: 1, Wait: 2, Start: 3, Begun: 3}, Record{Same: true, Tid: 8, Pid: 7}))
	f.Add(encode(Record{Same: true, Tid: 0, Pid: 0}))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := parse(nil, b)
		again := encode(rs...)
		if err == nil && !cmp.Equal(again, b) && len(b) > 0 {
			t.Errorf("%d bytes became %d", len(b), len(again))
		}
		if len(again) > len(b) {
			t.Errorf("%d records from %d bytes", len(rs), len(b))
		}
	})
}
