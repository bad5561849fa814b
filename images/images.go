// Package images holds the recipes of the root file systems that workloads run
// in: a folder an image, with image.yaml and the files that it names.
//
// The data path: 1. a folder here; 2. host/image reads its recipe, builds
// the tree and keeps it; 3. a workload's role names the image (Role.Image).
package images

import "embed"

// FS holds NAME/image.yaml and the files beside it.
//
//go:embed */*
var FS embed.FS
