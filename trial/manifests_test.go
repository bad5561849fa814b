package trial

import (
	"strings"
	"testing"

	"tare/record"
	"tare/sandbox"
)

// written is a kind whose sandboxes have manifests.
type written struct{ *kind }

func (written) Manifest(w sandbox.Want) ([]byte, error) { return []byte("name: " + w.Name + "\n"), nil }

// TestManifestsKept: a trial keeps what its sandboxes were made from, whether it succeeds or not.
func TestManifestsKept(t *testing.T) {
	for _, bad := range []string{"", "start client"} {
		e, _ := engine(t, bad)
		for name, k := range e.Kinds {
			e.Kinds[name] = written{k.(*kind)}
		}
		_, evidence := e.Trial(t.Context(), first(e))
		var got []string
		for _, r := range evidence.Raw {
			if r.Name == record.RawManifests {
				got = append(got, string(r.Data))
			}
		}
		if strings.Join(got, "+") != "name: x-1-server\n---\nname: x-1-client\n" {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
