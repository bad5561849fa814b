package oci

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"

	"tare/host/state/statetest"
	"tare/sandbox"
)

// dying is a runtime that does on `run` what runsc has done when a signal ends it halfway. It
// makes a control socket, and mounts an empty namespace twice, like two that start at once.
// ROOT is its --root, ID the container.
const dying = `
while test $# -gt 0; do
	case $1 in
	--root) ROOT=$2; shift ;;
	run) RUN=1 ;;
	delete) exit 1 ;;
	esac
	ID=$1
	shift
done
test "$RUN" || exit 0
touch "$ROOT/runsc-$ID.sock" "$ROOT/null-netns"
mount --bind /proc/self/ns/net "$ROOT/null-netns"
mount --bind /proc/self/ns/net "$ROOT/null-netns"
EXTRA
touch "$BUNDLE/ready"
exec sleep 1000
`

// TestRuntimeKilledHalfWay: a runtime that was killed halfway leaves nothing. Files that may
// not be the container's are named.
func TestRuntimeKilledHalfWay(t *testing.T) {
	statetest.HostLock(t)
	for name, c := range map[string]struct{ extra, says string }{
		"as runsc does it":       {"", ""},
		"with a file of its own": {`touch "$ROOT/surprise"`, "surprise"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := sandbox.Spec{Want: sandbox.Want{Name: "half-way"}, Dir: t.TempDir(), Root: t.TempDir()}
			ready := filepath.Join(t.TempDir(), "ready")
			text := strings.NewReplacer("EXTRA", c.extra, "$BUNDLE/ready", ready).Replace(dying)
			k := kind("half", script(t, text))
			k.known = true // no probing
			dir := filepath.Join(RootDir(), "half")
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(ready); err == nil {
						cancel() // Ctrl-C
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			_, err := k.Launch(ctx, spec, sandbox.Command{Args: []string{"/nothing"}}, sandbox.Whole)
			if err == nil || (c.says != "") != strings.Contains(err.Error(), "the runtime left "+c.says) {
				t.Errorf("got %v", err)
			}
			var left []string
			filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
				if err == nil {
					left = append(left, filepath.Base(path))
				}
				return nil
			})
			want := []string(nil)
			if c.says != "" {
				want = []string{"half", runtimeName, c.says}
			}
			if !slices.Equal(left, want) {
				t.Errorf("left: %v, want %v", left, want)
			}
			mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
			if err != nil || len(mounts) > 0 {
				t.Errorf("still mounted: %v, %v", mounts, err)
			}
		})
	}
}
