package vm

import (
	"strings"
	"testing"
)

// TestCheckOptions: what starts on no host is refused before anything is tried.
func TestCheckOptions(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		want    string // "": possible
	}{
		{nil, ""},
		{map[string]string{paramVCPUs: all, paramMaxVCPUs: "2"}, ""},
		{map[string]string{paramVCPUs: "64"}, ""}, // on a host that has them
		{map[string]string{paramStart: startSnapshot, paramRootfs: rootBlock}, ""},
		{map[string]string{paramStart: startSnapshot}, "start = snapshot needs rootfs = block"},
		{map[string]string{paramVCPUs: "0"}, "default_vcpus = 0"},
		{map[string]string{paramVCPUs: "4", paramMaxVCPUs: "2"}, "max_vcpus is 2"},
	} {
		err := New(Config{}).CheckOptions(c.options)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.options, err, c.want)
		}
	}
}
