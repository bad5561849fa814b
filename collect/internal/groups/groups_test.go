package groups

import (
	"slices"
	"testing"
)

func TestOutermost(t *testing.T) {
	got := Outermost([]string{"tare/b", "tare/a/x", "tare/a", "/tare/a-b/", "tare/b"})
	if want := []string{"tare/a", "tare/a-b", "tare/b"}; !slices.Equal(got, want) {
		t.Errorf("Outermost = %v, want %v", got, want)
	}
	if got := Outermost([]string{"", "tare/a"}); !slices.Equal(got, []string{""}) {
		t.Errorf("the root holds all: %v", got)
	}
}
