package image

import "testing"

func TestCountsPackages(t *testing.T) {
	if got := packages(1) + ", " + packages(2); got != "1 package, 2 packages" {
		t.Error(got)
	}
}
