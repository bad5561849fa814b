package text

import (
	"bytes"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/advice"
)

// short is the answer that fits a screen.
func short(t *testing.T, r *analyse.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteShort(&b, r, testHosts(), Options{Width: 80, Dir: "results/first"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestShortOfAnImport: nothing of an import can be measured, so the last line does not send a reader to measure.
func TestShortOfAnImport(t *testing.T) {
	r := manyOf(2, 1, 1)
	r.Advice = []advice.Item{{Rule: "undecided", Change: "Measure more blocks"}}
	const next = "What to measure next: tare advise results/first"
	if got := short(t, r); !strings.Contains(got, next) {
		t.Errorf("measured:\n%s", got)
	}
	if r.Imported = true; strings.Contains(short(t, r), next) {
		t.Errorf("imported:\n%s", short(t, r))
	}
}
