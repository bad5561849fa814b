package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/cluster"
	"tare/host"
	"tare/host/image"
	"tare/host/rootfs"
	"tare/site"
	"tare/workload"
)

func (a *app) imagePushVerb(f *imageFlags) *cobra.Command {
	var o image.PushOptions
	var binaries, sets []string
	var file string
	c := &cobra.Command{
		Use:               "push (NAME|PATH REFERENCE | --study STUDY PREFIX)",
		ValidArgsFunction: imageNames,
		Short:             "Send an image, or all images of a study, to a registry",
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return exactly(1, "with --study one argument, what all references begin with, such as registry.example.org/tare")(cmd, args)
			}
			return exactly(2, "an image and a reference")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return a.pushStudy(cmd.Context(), *f, file, sets, args[0], o)
			}
			if len(binaries) > 0 && args[0] != image.Program {
				return coded(exitUsage, "--binary is for the image tare; on a host with that processor, `tare image push %s %s --add` adds its image", args[0], args[1])
			}
			if cmd.Flags().Changed("cold") && (o.Copies < 1 || o.Copies > image.MostCopies) {
				return coded(exitUsage, "--cold %d: give 1 to %d copies, or leave --cold out", o.Copies, image.MostCopies)
			}
			for _, path := range binaries {
				t, err := a.foreign(cmd.Context(), path)
				if err != nil {
					return err
				}
				o.Others = append(o.Others, t)
			}
			return a.send(cmd, *f, args[0], "reference", true, func(b *image.Builder, t image.Tree) (string, error) {
				ref, err := b.Push(cmd.Context(), t, args[1], o)
				if err != nil {
					err = notPushed(err)
				}
				return ref, err
			})
		},
	}
	fl := c.Flags()
	fl.BoolVar(&o.Insecure, "insecure", false, "push to a registry without TLS, or with a certificate that cannot be verified")
	alias(fl, "insecure-registry", "insecure") // as run --on k8s calls it
	fl.BoolVar(&o.Add, "add", false, "keep the reference's images for other processors: it then points to an index of all of them")
	fl.IntVar(&o.Copies, "cold", 0, "also push `N` copies that share no layer with the image, for cold starts (startup, image: cold); each node pulls each copy once")
	fl.StringVar(&file, "study", "", "push tare and each image of the `STUDY` that is not in a registry, to PREFIX/NAME; prints the flags for tare run --on k8s")
	fl.StringArrayVar(&sets, "set", nil, "with --study: override the study, as in tare run (repeatable)")
	fl.StringArrayVar(&binaries, "binary", nil, "with the image tare: also push an image of this `FILE`, a tare of the same version for another processor; it has no workload programs (repeatable)")
	c.MarkFlagsMutuallyExclusive("study", "binary")
	return c
}

// pushStudy pushes tare's image and the images of a study that are not in a registry, and prints the flags that name them.
func (a *app) pushStudy(ctx context.Context, f imageFlags, file string, sets []string, prefix string, o image.PushOptions) error {
	st, cat, err := readStudyOf(offeredWithout, nil, file, sets)
	if err != nil {
		return err
	}
	s := cluster.Site{Workloads: workloads()}
	names, err := s.ToPush(site.Request{Study: st, Catalogue: cat})
	if err != nil {
		return err
	}
	b, err := a.builder(f)
	if err != nil {
		return err
	}
	s.Apps, s.Insecure = map[string]string{}, o.Insecure
	for _, name := range append([]string{image.Program}, names...) {
		ref := ""
		err := a.withTree(ctx, b, name, true, func(t image.Tree) (err error) {
			ref, err = b.Push(ctx, t, strings.TrimSuffix(prefix, "/")+"/"+path.Base(name), o)
			return err
		})
		if err != nil {
			return notPushed(err)
		}
		if name == image.Program {
			s.Image = ref
		} else {
			s.Apps[name] = ref
		}
	}
	flags := s.About().Flag
	if f.json {
		return a.printJSON(map[string]any{"tare": s.Image, "apps": s.Apps, "flags": flags})
	}
	a.line("%s", flags)
	return nil
}

// notPushed is an error of a push, with its exit code.
func notPushed(err error) error {
	if err = unknown(err); errors.As(err, new(*codedError)) {
		return err
	}
	return coded(exitHost, "%w", err) // of the registry
}

// program is the root file system of sandboxes without an image of their own, with the programs of
// all workloads.
func (a *app) program(ctx context.Context) (image.Tree, error) {
	var tools []string
	for name, w := range workloads() {
		if name != "fault" { // it asks for a program that no host has
			tools = append(tools, needs(w)...)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return image.Tree{}, fmt.Errorf("cannot find tare's own binary: %w", err)
	}
	slices.Sort(tools)
	t, err := rootfs.Build(ctx, rootfsCache(), self, slices.Compact(tools))
	if len(t.Missing) > 0 {
		a.say("without %s, which this host does not have", strings.Join(t.Missing, ", "))
	}
	return image.Tree{Name: image.Program, Path: t.Path, Digest: t.Digest}, err
}

// needs returns the programs that a workload runs in tare's own image.
func needs(w workload.Workload) (out []string) {
	workload.EachRole(w, func(r *workload.Role) {
		if r.Image == "" {
			out = append(out, r.Needs...)
		}
	})
	return out
}

// foreign is the root file system of sandboxes on another processor: a tare that was built for it, alone.
func (a *app) foreign(ctx context.Context, binary string) (image.Tree, error) {
	b, err := buildinfo.ReadFile(binary)
	if errors.Is(err, fs.ErrNotExist) {
		return image.Tree{}, coded(exitUsage, "--binary %s: the file does not exist; give the path of a tare binary for the other processor", binary)
	}
	if err != nil {
		return image.Tree{}, coded(exitUsage, "--binary %s: %w; give a tare for another processor", binary, err)
	}
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return image.Tree{}, errors.New("this tare has no build information; build it with the Go tool")
	}
	arch, err := builtFor(b, own)
	if err != nil {
		return image.Tree{}, coded(exitUsage, "--binary %s: %w", binary, err)
	}
	t, err := rootfs.Bare(ctx, rootfsCache(), binary, arch)
	return image.Tree{Name: image.Program, Path: t.Path, Digest: t.Digest, Arch: arch}, err
}

// builtFor is the processor that a tare of the same version was built for, if it can be in an image
// beside this one.
func builtFor(b, own *debug.BuildInfo) (string, error) {
	set := map[string]string{}
	for _, s := range b.Settings {
		set[s.Key] = s.Value
	}
	arch := set["GOARCH"]
	switch {
	case b.Path != own.Path || set["GOOS"] != "linux":
		return "", fmt.Errorf("it is %s for %s; give a tare for Linux", b.Path, set["GOOS"])
	case b.Main.Version != own.Main.Version:
		return "", fmt.Errorf("it is version %s, and this tare %s; give the same version", b.Main.Version, own.Main.Version)
	case set["CGO_ENABLED"] != "0":
		return "", errors.New("it is not static; build it with CGO_ENABLED=0, as make build does")
	case arch == runtime.GOARCH:
		return "", fmt.Errorf("it is for %s, and so is the image of this host's tare; give one for another processor", arch)
	}
	return arch, nil
}

// rootfsCache has the root file systems of sandboxes without an image of their own.
func rootfsCache() string { return filepath.Join(host.DefaultDirs().Cache, "rootfs") }
