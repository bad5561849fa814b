package state

import (
	"context"

	"tare/site/claim"
)

// CleanSparing is Clean that leaves alone what spare names: tests share the host
// with whatever else is on it.
func CleanSparing(ctx context.Context, dryRun bool, spare func(kind, name string) bool) ([]claim.Leftover, error) {
	c := &cleaner{run: RunDir, lib: LibDir, dry: dryRun, spare: spare}
	return c.clean(ctx)
}
