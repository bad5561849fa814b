package remote

import (
	"tare/record"
	"testing"
)

// FuzzAnswer: nothing that a machine sends is worse than an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"facts":{"root":true,"home":"/"}}`, `{"opened":{"nodes":[{"name":"a"}],"skips":[{"cell":[],"reason":"x"}]}}`, `{"done":{"kind":"held","holder":{"pid":1}}}`,
		`{"made":{"seq":1,"block":1,"attempt":1,"cell":[{"factor":"sandbox","value":"runc"}],"status":"ok","Evidence":{"Series":[{"t":[1],"v":[1]}]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := decode[answer](line)
		if err != nil {
			return
		}
		if a.Opened != nil && a.Opened.check(opOpen) == nil && len(a.Opened.Nodes) == 0 {
			t.Error("no node")
		}
		if a.Made != nil && checkMade(a.Made, next(1)) == nil && (a.Made.Cell.Key() != "sandbox=runc" || a.Made.Status == record.OK && a.Made.Failure != nil) {
			t.Errorf("%+v", a.Made)
		}
		if a.Facts != nil {
			_ = a.Facts.check()
		}
		if a.Done != nil {
			_ = (&Machine{}).said(a.Done)
		}
	})
}
