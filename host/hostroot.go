package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tare/host/rootfs"
	"tare/volume"
	"tare/workload"
)

// hostRoot makes the image that is this host's own root file system.
func (h *session) hostRoot(ctx context.Context) (Image, error) {
	points, err := h.Wanted(func(r workload.Role) (out []string) {
		for _, v := range r.Volumes {
			if v.Medium == volume.Bind && r.Image == volume.HostRoot {
				out = append(out, v.Path())
			}
		}
		return out
	})
	if err != nil {
		return Image{}, err
	}
	return WholeRoot(ctx, filepath.Join(h.site.Dirs.Cache, "rootfs"), points)
}

// WholeRoot makes the image that is this host's own root file system, read-only. The tree below
// it, with this binary, is in a cache; points are directories that it must have.
func WholeRoot(ctx context.Context, cache string, points []string) (Image, error) {
	binary, err := os.Executable()
	if err != nil {
		return Image{}, fmt.Errorf("cannot find tare's own binary: %w", err)
	}
	t, shown, err := rootfs.Whole(ctx, cache, binary, points)
	if err != nil {
		return Image{}, err
	}
	return Image{Root: t.Path, Shown: shown}, nil
}
