package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"tare/store"
)

// Write makes a bundle of the results in dir; tare is the version of this program.
// It changes nothing there, and may run during a study. An error leaves an incomplete stream
// in w: use a file that is renamed when it is complete.
func Write(ctx context.Context, w io.Writer, dir, tare string) (_ *Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bundle %s: %w", dir, err)
		}
	}()
	tmp, err := os.MkdirTemp("", "tare-bundle-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	m := &Manifest{Format: format, Version: Version, Tare: tare, Folder: folderOf(dir)}
	files, err := snapshot(ctx, dir, tmp, m)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	snap, err := os.OpenRoot(tmp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = snap.Close() }()
	from := func(name string) *os.Root {
		if name == dbName {
			return snap
		}
		return root
	}
	for _, file := range files {
		name := file.Name
		member, err := sum(ctx, from(name), name)
		if errors.Is(err, fs.ErrNotExist) && name != dbName || err == nil && file.SHA256 != "" && file.SHA256 != member.SHA256 {
			m.Missing = append(m.Missing, name) // gone, or changed
			continue
		}
		if err != nil {
			return nil, err
		}
		m.Members = append(m.Members, member)
	}
	enc, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(maxWindow))
	if err != nil {
		return nil, err
	}
	if err := archive(ctx, enc, m, from); err != nil {
		_ = enc.Close()
		return nil, err
	}
	return m, enc.Close()
}

// folderOf returns the last part of a folder's path, also for ".".
func folderOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if name := filepath.Base(dir); checkFolder(name) == nil {
		return name
	}
	return "results"
}

// snapshot copies the database to tmp and lists the members that belong to it,
// sorted.
func snapshot(ctx context.Context, dir, tmp string, m *Manifest) (_ []store.EvidenceFile, err error) {
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		return nil, err
	}
	err = db.Snapshot(ctx, filepath.Join(tmp, dbName))
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	copied, err := store.OpenReadOnly(tmp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if err := copied.Genuine(ctx); err != nil {
		return nil, err // the reader would refuse it
	}
	st, err := copied.State(ctx)
	if err != nil {
		return nil, err
	}
	m.Trials = st.Trials
	files, err := copied.EvidenceFiles(ctx)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]string)
	for _, file := range files {
		name := file.Name
		if err := checkName(name); err != nil {
			return nil, err
		}
		if other, ok := seen[folded(name)]; ok {
			return nil, refuse("%q and %q cannot both be unpacked where case does not matter", other, name)
		}
		seen[folded(name)] = name
	}
	files = append(files, store.EvidenceFile{Name: dbName}, store.EvidenceFile{Name: studyName})
	slices.SortFunc(files, func(a, b store.EvidenceFile) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// sum reads a file for its size and hash.
func sum(ctx context.Context, root *os.Root, name string) (Member, error) {
	f, err := plain(root, name)
	if err != nil {
		return Member{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err := io.Copy(h, &stoppable{ctx, f})
	return Member{Name: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// plain opens a regular file. It follows no link: a file elsewhere may be private.
func plain(root *os.Root, name string) (*os.File, error) {
	st, err := root.Lstat(filepath.FromSlash(name))
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; move it elsewhere", name)
	}
	if err != nil {
		return nil, err
	}
	return root.Open(filepath.FromSlash(name))
}

func archive(ctx context.Context, w io.Writer, m *Manifest, from func(string) *os.Root) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if len(text) >= maxManifest || bytes.Count(text, []byte(",")) > maxCommas {
		return fmt.Errorf("the folder has %d files, more than a bundle may have; split the study", len(m.Members))
	}
	tw := tar.NewWriter(w)
	if err := put(tw, manifestName, int64(len(text))+1, io.MultiReader(bytes.NewReader(text), strings.NewReader("\n"))); err != nil {
		return err
	}
	for _, x := range m.Members {
		if err := add(ctx, tw, x, from(x.Name)); err != nil {
			return err
		}
	}
	return tw.Close()
}

func add(ctx context.Context, tw *tar.Writer, x Member, root *os.Root) error {
	f, err := plain(root, x.Name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	err = put(tw, x.Name, x.Size, io.TeeReader(io.LimitReader(&stoppable{ctx, f}, x.Size), h))
	if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && hex.EncodeToString(h.Sum(nil)) != x.SHA256 {
		return fmt.Errorf("%s changed while it was read; only tare may write there; try again", x.Name)
	}
	return err
}

// put adds a member without time, owner or mode.
func put(tw *tar.Writer, name string, size int64, r io.Reader) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	n, err := io.Copy(tw, r)
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
