package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"tare/scripts/truth/causes"
)

// TestCauses holds what docs/cause.md says of both bands. TARE_TRUTH is how many causes of each
// kind, TARE_SEED the seed; TARE_WRONG prints the findings that are wrong: all, or those of a
// planted cause.
func TestCauses(t *testing.T) {
	l := testLab(t, 1)
	n, seed := 300, uint64(1)
	if v, err := strconv.Atoi(os.Getenv("TARE_TRUTH")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("TARE_SEED"), 10, 64); err == nil {
		seed = v
	}
	for _, band := range l.pop.bands() {
		t.Run(band.Name, func(t *testing.T) {
			var b strings.Builder
			rep, err := causes.Run(&b, seed, n, band)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("\n%s", b.String())
			for _, f := range causesFigures(&rep) {
				if f.outside() {
					t.Errorf("%s: %s of %.0f, want %s", f.name, f.text(percent), f.number, f.band)
				}
			}
			show(t, &rep, os.Getenv("TARE_WRONG"))
		})
	}
}

func show(t *testing.T, rep *causes.Report, want string) {
	t.Helper()
	for i := range rep.Cases {
		c := &rep.Cases[i]
		if want == "" || !c.Wrong() || want != "all" && !strings.Contains(c.Planted, want) {
			continue
		}
		f := &c.Finding
		t.Logf("seed %d %s left %.2f: %s", c.Seed, c.Planted, c.Left, fmt.Sprintf("ratio %.3g costs %v undecided %v %s %v conf %.2f trials %d scatter %.3f %s", *f.Ratio, f.Costs, f.Undecided, f.Cause, f.Among, f.Confidence, f.Trials, c.Noise, f.Text))
	}
}
