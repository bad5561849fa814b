package pod

import (
	"strings"
	"testing"

	"tare/volume"
)

// TestCheckRoom: files that a claim does not hold are refused; of a pod without a claim nothing is known.
func TestCheckRoom(t *testing.T) {
	disk, block := volume.AtData(volume.Disk)[0], volume.Volume{Name: "data", Mode: volume.Block, Size: 1 << 40}
	for _, c := range []struct {
		class string
		v     *volume.Volume
		bytes int64
		want  string
	}{
		{"local", &disk, 1 << 30, ""},
		{"local", &disk, 1 << 40, "claim-size is 10GiB, and the workload's files need 1TiB"},
		{"none", &disk, 1 << 40, ""},
		{"local", &block, 1 << 40, ""},
		{"local", nil, 1 << 40, ""},
	} {
		err := CheckRoom(c.v, c.bytes, map[string]string{storageClass: c.class, claimSize: usualClaim})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
