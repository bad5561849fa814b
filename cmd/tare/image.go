package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/host"
	"tare/host/image"
	"tare/param"
	"tare/sandbox/vm"
)

// limitVariable bounds the cache where no flag does.
const limitVariable = "TARE_IMAGE_LIMIT"

// imageFlags are what the verbs of images share.
type imageFlags struct {
	cache, limit string
	json         bool
}

func (a *app) imageVerb() *cobra.Command {
	var f imageFlags
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build, keep and export the root file systems of applications",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var verbs []string
			for _, c := range cmd.Commands() {
				verbs = append(verbs, c.Name())
			}
			return coded(exitUsage, "tare image has no verb %q; %s", args[0], param.Suggest(args[0], verbs))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fl := cmd.PersistentFlags()
	fl.StringVar(&f.cache, "cache", "", "folder of the cache (default /var/cache/tare/images, for root)")
	fl.StringVar(&f.limit, "limit", "", "largest size of the cache, such as 8GiB")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	cmd.AddCommand(a.imageListVerb(&f), a.imageBuildVerb(&f), a.imagePruneVerb(&f), a.imageExportVerb(&f), a.imagePushVerb(&f))
	return cmd
}

// builder is a builder into the cache, which tells its steps on standard error.
func (a *app) builder(f imageFlags) (*image.Builder, error) {
	b := &image.Builder{
		Cache: f.cache,
		Say:   a.say,
	}
	if b.Cache == "" {
		d := host.DefaultDirs()
		if err := d.Own(); err != nil {
			return nil, err
		}
		b.Cache = filepath.Join(d.Cache, "images")
	}
	limit, from := f.limit, "--limit"
	if limit == "" {
		limit, from = os.Getenv(limitVariable), limitVariable
	}
	if limit == "" {
		return b, nil
	}
	var err error
	if b.Limit, err = param.ParseSize(limit); err != nil || b.Limit <= 0 {
		return nil, coded(exitUsage, "%s %q is not a size, such as 8GiB", from, limit)
	}
	return b, nil
}

// unknown makes a wrong name a mistake of usage.
func unknown(err error) error {
	if errors.Is(err, image.ErrUnknown) || errors.Is(err, image.ErrReference) {
		return coded(exitUsage, "%w", err)
	}
	return err
}

func (a *app) imageBuildVerb(f *imageFlags) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               "build NAME...",
		ValidArgsFunction: imageNames,
		Short:             "Build or pull images that the cache lacks",
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return coded(exitUsage, "tare image build takes names of images, or --all; see `tare image list`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.builder(*f)
			if err != nil {
				return err
			}
			if all {
				if args, err = b.Names(); err != nil {
					return err
				}
			}
			var failed error
			trees := []image.Tree{}
			for _, name := range args {
				t, err := b.Build(cmd.Context(), name)
				if err != nil {
					failed = errors.Join(failed, unknown(err))
					continue
				}
				trees = append(trees, t)
				if !f.json {
					a.line("%s  %s  %s", t.Name, t.Path, t.Digest)
				}
			}
			if f.json {
				failed = errors.Join(a.printJSON(trees), failed)
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "build every image that has a recipe")
	return cmd
}

// imageLine is one image as `tare image list` prints it.
type imageLine struct {
	Name    string  `json:"name"`
	About   string  `json:"about"`
	Built   bool    `json:"built"`
	Digest  string  `json:"digest,omitempty"`
	Path    string  `json:"path,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // that the build took
	Problem string  `json:"problem,omitempty"` // why this host cannot build it
}

func (a *app) imageListVerb(f *imageFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the images, and which are built",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b, err := a.builder(*f)
			if err != nil {
				return err
			}
			lines, err := listImages(b)
			if err != nil {
				return err
			}
			own, err := b.Own()
			if err != nil {
				return err
			}
			for _, t := range own {
				lines = append(lines, imageLine{
					Name: t.Name, About: "taken at " + t.Built.Format(time.DateTime), Built: true,
					Digest: strings.TrimPrefix(t.Identity(), "sha256:"), Path: t.Path, Bytes: t.Bytes, Seconds: t.Seconds,
				})
			}
			if f.json {
				return a.printJSON(lines)
			}
			for _, l := range lines {
				state := "not built"
				switch {
				case l.Built:
					state = fmt.Sprintf("%s %s", l.Digest[:12], imageSize(l.Bytes))
				case l.Problem != "":
					state = "cannot be built"
				}
				a.line("%-12s %-22s %s", l.Name, state, l.About)
				if l.Problem != "" {
					a.line("%-12s %s", "", strings.ReplaceAll(l.Problem, "\n", "; "))
				}
			}
			return nil
		},
	}
}

func listImages(b *image.Builder) ([]imageLine, error) {
	names, err := b.Names()
	if err != nil {
		return nil, err
	}
	out := []imageLine{}
	for _, n := range names {
		l := imageLine{Name: n}
		r, err := b.Recipe(n)
		if err != nil {
			return nil, err
		}
		l.About = r.About
		t, built, err := b.Find(n)
		if err != nil {
			l.Problem = err.Error()
		}
		if built {
			l.Built, l.Digest, l.Path, l.Bytes, l.Seconds = true, t.Digest, t.Path, t.Bytes, t.Seconds
		}
		out = append(out, l)
	}
	return out, nil
}

func (a *app) imagePruneVerb(f *imageFlags) *cobra.Command {
	var all, dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that newer ones replaced, and shrink the cache",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := a.builder(*f)
			if err != nil {
				return err
			}
			left, err := image.Leftovers(b.Cache, dry)
			if err != nil {
				return err
			}
			gone, err := b.Prune(cmd.Context(), image.PruneOptions{Limit: b.Limit, All: all, Old: true, Dry: dry})
			var machines []vm.Cached
			if f.cache == "" {
				var failed error
				machines, failed = vm.Prune(cmd.Context(), machineCache(), vm.PruneOptions{Limit: b.Limit, All: all, Dry: dry})
				err = errors.Join(err, failed)
			}
			if f.json {
				return errors.Join(a.printJSON(map[string]any{
					"removed": append([]image.Entry{}, gone...), "leftovers": append([]string{}, left...),
					"machines": append([]vm.Cached{}, machines...), "dry_run": dry,
				}), err)
			}
			verb := "removed"
			if dry {
				verb = "would remove"
			}
			for _, p := range left {
				a.line("%s leftover %s", verb, p)
			}
			var bytes int64
			for _, e := range gone {
				bytes += e.Bytes
				a.line("%s %s %s, last used %s", verb, e.Kind, e.Name, e.Used.Format(time.DateTime))
			}
			for _, e := range machines {
				bytes += e.Bytes
				a.line("%s machine's %s %s, last used %s", verb, e.Kind, e.Name, e.Used.Format(time.DateTime))
			}
			a.line("%s %d MiB", verb, bytes>>20)
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove everything that is not in use")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list only")
	return cmd
}

func (a *app) imageExportVerb(f *imageFlags) *cobra.Command {
	return &cobra.Command{
		Use:               "export NAME DIR",
		ValidArgsFunction: imageNames,
		Short:             "Write an image as an OCI image layout",
		Args:              exactly(2, "the name of an image and a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.send(cmd, *f, args[0], "manifest", false, func(b *image.Builder, t image.Tree) (string, error) {
				return b.Export(cmd.Context(), t, args[1])
			})
		},
	}
}

// send builds an image, passes it to the function to, and prints the result under the name what. With local, name may be a path.
func (a *app) send(cmd *cobra.Command, f imageFlags, name, what string, local bool, to func(*image.Builder, image.Tree) (string, error)) error {
	b, err := a.builder(f)
	if err != nil {
		return err
	}
	return a.withTree(cmd.Context(), b, name, local, func(t image.Tree) error {
		said, err := to(b, t)
		if err != nil {
			return unknown(err)
		}
		if f.json {
			return a.printJSON(map[string]string{"name": t.Name, "digest": t.Digest, what: said})
		}
		a.line("%s", said)
		return nil
	})
}

// withTree builds an image and passes it to a function, which may use it until it returns. With local, name may be a path.
func (a *app) withTree(ctx context.Context, b *image.Builder, name string, local bool, use func(image.Tree) error) error {
	if name == image.Program {
		t, err := a.program(ctx)
		if err != nil {
			return err
		}
		return use(t)
	}
	if !local || !image.OnDisk(name) {
		if _, err := b.Recipe(name); err != nil { // an image from a registry is in one already, with its own layers
			if errors.Is(err, image.ErrUnknown) {
				err = fmt.Errorf("%w, and %s itself", err, image.Program)
			}
			return unknown(err)
		}
	}
	t, release, err := b.Use(ctx, name)
	if err != nil {
		return unknown(err)
	}
	defer release()
	return use(t)
}

// imageSize is a size for people: whole MiB from one on.
func imageSize(n int64) string {
	if n >= 1<<20 {
		n = n >> 20 << 20
	}
	return param.FormatSize(n)
}

// imageNames completes names of images.
func imageNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, err := (&image.Builder{}).Names()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
