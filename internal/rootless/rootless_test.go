package rootless

import "testing"

func TestSingle(t *testing.T) {
	for text, want := range map[string]bool{
		"         0       1000          1\n":                                   true,  // unshare --map-root-user
		"         0          0 4294967295\n":                                   false, // the machine
		"         0       1000          1\n         1     100000      65536\n": false, // a rootless engine's container
		"         0          0          1\n":                                   false, // root's own namespace
		"      1000       1000          1\n":                                   false,
		"":                                                                     false,
	} {
		if got := Single(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
