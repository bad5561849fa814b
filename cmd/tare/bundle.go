package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tare/bundle"
	"tare/param"
	"tare/record"
	"tare/report/words"
)

type bundleFlags struct {
	output, limit string
	check, unpack bool
	json          bool
}

func (a *app) bundleVerb() *cobra.Command {
	var f bundleFlags
	cmd := &cobra.Command{
		Use:   "bundle DIR | --check FILE | --unpack FILE",
		Short: "Pack a results folder into one file, to send or to keep",
		Args:  exactly(1, "one results folder, or one bundle with --check or --unpack"),
		RunE: func(cmd *cobra.Command, args []string) error {
			limits, err := f.limits()
			if err != nil {
				return err
			}
			if !f.check && !f.unpack {
				return a.bundle(cmd.Context(), args[0], f)
			}
			if !bundle.Is(args[0]) {
				return coded(exitUsage, "%s is not a bundle; `tare bundle DIR` makes one", args[0])
			}
			return a.unbundle(cmd.Context(), args[0], f, limits)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			switch {
			case len(args) > 0:
				return nil, cobra.ShellCompDirectiveNoFileComp
			case f.check || f.unpack:
				return []cobra.Completion{"zst"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "write this file (default NAME"+bundle.Suffix+"); with --unpack: make this folder (default results/NAME)")
	fl.BoolVar(&f.check, "check", false, "say whether a bundle is intact")
	fl.BoolVar(&f.unpack, "unpack", false, "unpack a bundle into a results folder")
	fl.StringVar(&f.limit, "limit", "", "with --check and --unpack: refuse what unpacks to more (default 16GiB, and 200 times the file)")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("check", "unpack")
	return cmd
}

func (f *bundleFlags) limits() (bundle.Limits, error) {
	l := bundle.DefaultLimits()
	switch {
	case f.check && f.output != "":
		return l, coded(exitUsage, "--check writes nothing; leave out -o")
	case f.limit == "":
		return l, nil
	case !f.check && !f.unpack:
		return l, coded(exitUsage, "--limit goes with --check and --unpack")
	}
	n, err := param.ParseSize(f.limit)
	if err != nil || n <= 0 {
		return l, coded(exitUsage, "--limit %q is not a size, such as 32GiB", f.limit)
	}
	return bundle.Limits{Total: n}, nil
}

// bundled is what the verb says of a bundle.
type bundled struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Folder  string `json:"folder,omitempty"` // made by --unpack
	Trials  int    `json:"trials"`
	Members int    `json:"members"`
	Content int64  `json:"content_bytes"` // of all members
	Tare    string `json:"tare"`          // that made it

	Missing      []string `json:"missing"`       // the first 1000
	MissingCount int      `json:"missing_count"` // all
}

// maxMissing and maxMissingJSON bound how many missing files tare names: a manifest may
// list a million.
const (
	maxMissing     = 20
	maxMissingJSON = 1000
)

func describeBundle(file string, m *bundle.Manifest, bytes int64, sum []byte) bundled {
	return bundled{File: file, Bytes: bytes, SHA256: hex.EncodeToString(sum), Trials: m.Trials, Members: len(m.Members),
		Content: m.Bytes(), Tare: m.Tare, Missing: append([]string{}, m.Missing[:min(len(m.Missing), maxMissingJSON)]...), MissingCount: len(m.Missing)}
}

// bundle makes one.
func (a *app) bundle(ctx context.Context, dir string, f bundleFlags) error {
	if r, err := openResults(dir); err != nil { // before the output is looked at
		return err
	} else if err := r.Close(); err != nil {
		return err
	}
	file := f.output
	if file == "" {
		file = folderName(dir) + bundle.Suffix
	}
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		return coded(exitUsage, "%s is a directory; name a file with -o FILE", file)
	} else if err == nil && st.Mode().IsRegular() { // it may be all that is left of other results
		return coded(exitUsage, "%s already exists; name a new file with -o FILE, or remove it first", file)
	}
	var m *bundle.Manifest
	h := sha256.New()
	n := new(counter)
	err := writeStoppable(ctx, file, func(ctx context.Context, w io.Writer) (err error) {
		if m, err = bundle.Write(ctx, io.MultiWriter(w, h, n), dir, versionText()); err != nil {
			return err
		}
		if out, ok := w.(*os.File); ok {
			_ = out.Sync() // a pipe has none; the name comes after the content, also when power fails
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.tell(describeBundle(file, m, int64(*n), h.Sum(nil)), f.json)
}

// unbundle checks or unpacks one.
func (a *app) unbundle(ctx context.Context, file string, f bundleFlags, l bundle.Limits) error {
	sum, n, err := hashFile(file)
	if err != nil {
		return err
	}
	var m *bundle.Manifest
	dir := f.output
	err = a.stoppable(ctx, func(ctx context.Context) (err error) {
		if f.check {
			m, err = bundle.Check(ctx, file, l)
			return err
		}
		m, dir, err = unpackTo(ctx, file, dir, l)
		return err
	})
	if err != nil {
		return refused(err)
	}
	out := describeBundle(file, m, n, sum)
	if f.unpack {
		out.Folder = dir
	}
	return a.tell(out, f.json)
}

// unpackTo makes a results folder of a bundle, by renaming; dir "" is
// results/NAME.
func unpackTo(ctx context.Context, file, dir string, l bundle.Limits) (_ *bundle.Manifest, _ string, err error) {
	beside := filepath.Dir(dir)
	if dir == "" {
		beside = "results"
	} else if _, err := os.Lstat(dir); err == nil {
		return nil, "", coded(exitUsage, "%s already exists; name a new folder with -o DIR", dir)
	}
	if err := os.MkdirAll(beside, 0o755); err != nil { //nolint:gosec // results are meant to be read by others
		return nil, "", err
	}
	tmp, err := os.MkdirTemp(beside, ".bundle-*")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }() // gone already when all went well
	m, err := bundle.Unpack(ctx, file, tmp, l)
	if err != nil {
		return nil, "", err
	}
	if dir == "" {
		dir = filepath.Join(beside, m.Folder)
		if _, err := os.Lstat(dir); err == nil {
			return nil, "", coded(exitUsage, "%s already exists; name a new folder with -o DIR", dir)
		}
	}
	if err := readable(tmp); err != nil {
		return nil, "", err
	}
	return m, dir, os.Rename(tmp, dir)
}

// readable gives a folder the modes of one that `tare run` made.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755) //nolint:gosec // results are meant to be read by others
		}
		return os.Chmod(path, 0o644) //nolint:gosec // results are meant to be read by others
	})
}

// tell prints what a bundle is.
func (a *app) tell(b bundled, asJSON bool) error {
	for _, name := range b.Missing[:min(len(b.Missing), maxMissing)] {
		a.say("%s is gone from the folder, or is not what was stored; the bundle leaves it out", name)
	}
	if more := b.MissingCount - maxMissing; more > 0 {
		a.say("and %d more files", more)
	}
	if asJSON {
		return a.printJSON(b)
	}
	to := ""
	if b.Folder != "" {
		to = " -> " + b.Folder
	}
	a.line("%s%s: %s, %s, %s; sha256 %s", b.File, to, words.Count(b.Trials, "trial"), words.Count(b.Members, "file"),
		words.Value(float64(b.Bytes), record.Byte), b.SHA256)
	return nil
}

// refused makes a bundle that cannot be read a mistake of usage.
func refused(err error) error {
	if errors.Is(err, bundle.ErrRefused) || errors.Is(err, bundle.ErrNewer) {
		return coded(exitUsage, "%w", err)
	}
	return err
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func hashFile(path string) (sum []byte, n int64, err error) {
	f, err := os.Open(path) //nolint:gosec // the user named it
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err = io.Copy(h, f)
	return h.Sum(nil), n, err
}

// plotsOf is where the graphs of results go: into their folder, beside their
// bundle.
func (a *app) plotsOf(dir string) string {
	if given := a.given(dir); given != dir {
		return strings.TrimSuffix(given, bundle.Suffix) + "-plots"
	}
	return filepath.Join(dir, "plots")
}
