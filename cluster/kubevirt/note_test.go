package kubevirt

import (
	"strings"
	"testing"
)

// TestNoteOptions: several threads of the pool need several queues.
func TestNoteOptions(t *testing.T) {
	for _, c := range []struct {
		threads, queues string
		want            bool
	}{{"4", "false", true}, {"4", "true", false}, {"1", "false", false}} {
		got := new(Machines).NoteOptions(map[string]string{paramPolicy: pool, paramPool: c.threads, paramBlockMQ: c.queues})
		if strings.Contains(got, "write block-multi-queue: true") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
