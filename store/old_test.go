package store

import (
	"strings"
	"testing"
)

// TestDamagedSchema1: without checksums, every reader leaves out the trials whose rows it
// cannot decode, whatever it wants of them. A writer refuses the folder and does not upgrade it.
func TestDamagedSchema1(t *testing.T) {
	for what, damage := range map[string]string{
		"histograms": "UPDATE histograms SET encoded = 'garbage' WHERE trial = 1",
		"samples":    "UPDATE samples SET value = x'00' WHERE trial = 1 AND labels <> ''",
		"facts":      "UPDATE facts SET value = x'00' WHERE trial = 1",
		"levels":     "UPDATE levels SET level = x'00' WHERE trial = 1 AND ord = 1",
	} {
		t.Run(what, func(t *testing.T) {
			dir := golden(t, "v1", damage)
			for name, pick := range map[string]Pick{"all": {All: true}, "a few": {NoHistograms: true}} {
				r, err := OpenReadOnly(dir)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, err := range r.Some(t.Context(), pick) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				all, err := r.Damage(t.Context())
				if err != nil || n != goldenTrials-1 || len(all) != 2 || all[0].Name != "000001-1" {
					t.Errorf("%s: %d trials, damage %v, %v", name, n, all, err)
				}
				_ = r.Close()
			}
			if err := closed(Open(dir)); err == nil || !strings.Contains(err.Error(), "000001-1") {
				t.Errorf("a writer: %v", err)
			}
			r, err := OpenReadOnly(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if r.version != 1 {
				t.Errorf("it has schema %d now", r.version)
			}
		})
	}
}

// TestDamagedSchema2: what the checksums of schema 2 show as damaged is not converted, for
// it would get a checksum of what it is now.
func TestDamagedSchema2(t *testing.T) {
	dir := golden(t, "v2", "UPDATE samples SET value = value * 2 WHERE trial = 2")
	if err := closed(Open(dir)); err == nil || !strings.Contains(err.Error(), "000002-1") {
		t.Errorf("a writer: %v", err)
	}
	r, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if all, err := r.Trials(); err != nil || len(all) != goldenTrials-1 || r.version != 2 {
		t.Errorf("%d trials, %v, schema %d", len(all), err, r.version)
	}
}
