package trial

import (
	"context"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// TestImageSaysHowItsProgramsRun: words for the image's own command, its environment below the
// role's, its directory unless the role has one, its user; and the record says which it was.
func TestImageSaysHowItsProgramsRun(t *testing.T) {
	img := Image{
		Digest: "sha256:1", Entrypoint: []string{"/enter"}, Command: []string{"serve", "fast"},
		Env: []string{"A=image", "B=image"}, Dir: "/srv", User: sandbox.User{UID: 7, GID: 8},
	}
	var got []sandbox.Command
	say := func(_ context.Context, c sandbox.Command) (sandbox.Exit, error) {
		_, _ = io.WriteString(c.Stdout, "42\n")
		c.Stdout, c.Stderr, c.Gate = nil, nil, nil
		got = append(got, c)
		return sandbox.Exit{}, nil
	}
	trial, _, _, _ := serve(t, script{"/tare": say, "first": say}, func(e *Maker, _ *serving) { e.Place.(*place).image = img },
		workload.Role{Name: "main", Mode: workload.Exec, Image: "x", Env: []string{"B=role"}, Before: []string{"first", workload.ImageEntrypoint}, Args: []string{"/tare", workload.ImageCommand}, Dir: "/work"})
	if trial.Status != record.OK || trial.Facts["main.image"] != "x" || trial.Facts["main.image_digest"] != "sha256:1" {
		t.Errorf("%s %+v %v", trial.Status, trial.Failure, trial.Facts)
	}
	want := []sandbox.Command{
		{Args: []string{"first", "/enter"}, Env: []string{"A=image", "B=image", "B=role"}, Dir: "/work", User: img.User},
		{Args: []string{"/tare", "/enter", "serve", "fast"}, Env: []string{"A=image", "B=image", "B=role"}, Dir: "/work", User: img.User},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
