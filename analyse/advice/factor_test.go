package advice

import (
	"strings"
	"testing"

	"tare/record"
)

// TestPatchesOf: a level is set where its factor is, in the sandboxes that have it; none and 0 are one level.
func TestPatchesOf(t *testing.T) {
	for _, c := range []struct {
		factor, level string
		family        record.Family
		want          []string // in the patches, one after another
	}{
		{"io_threads", "4", record.FamilyVM, []string{"supplementalPoolThreadCount: 4", "<iothreads>4</iothreads>", `"num-queues": 4`}},
		{"io_threads", "none", record.FamilyVM, []string{"ioThreadsPolicy: null", "without iothreads", "no -object iothread"}},
		{"io_threads", "0", record.FamilyVM, []string{"ioThreadsPolicy: null", "without iothreads", "no -object iothread"}},
		{"directfs", "false", record.FamilyGVisor, []string{`directfs = "false"`, "runsc --directfs=false run"}},
		{"overlay2", "default", record.FamilyGVisor, []string{"# without overlay2", "runsc run"}},
		{"file-access-mounts", "exclusive", record.FamilyGVisor, []string{`file-access-mounts = "exclusive"`, "runsc --file-access-mounts=exclusive run"}},
		{"directfs", "false", record.FamilyVM, nil},
		{"jobs", "4", record.FamilyVM, nil},
	} {
		got := PatchesOf(c.factor, c.level, c.family)
		if len(got) != len(c.want) {
			t.Errorf("%s %s: %+v, want %d", c.factor, c.level, got, len(c.want))
			continue
		}
		for i, p := range got {
			if !strings.Contains(p.Text, c.want[i]) {
				t.Errorf("%s %s: %q does not say %q", c.factor, c.level, p.Text, c.want[i])
			}
		}
	}
}
