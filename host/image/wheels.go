package image

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tare/internal/files"
)

const (
	maxMembers = 200_000 // of one wheel
	maxRatio   = 200     // of a member's size to its compressed size, above a MiB
)

// addWheels puts Python packages into the tree, and compiles all of its Python.
func (j *job) addWheels(ctx context.Context, u *unpacker) error {
	if len(j.recipe.Wheels) == 0 {
		return nil
	}
	version, err := u.python()
	if err != nil {
		return err
	}
	site := "/usr/local/lib/python" + version + "/dist-packages"
	if err := j.unpackWheels(ctx, u, version, site); err != nil {
		return err
	}
	j.builder.say("%s: compiling Python", j.recipe.Name)
	// Trees are read-only, so Python would compile the rest again at every start.
	// unchecked-hash (PEP 552) does not write the sources' times into the files.
	return u.step(ctx, []string{"python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
		"/usr/lib/python" + version, "/usr/lib/python3/dist-packages", site})
}

func (j *job) unpackWheels(ctx context.Context, u *unpacker, version, site string) error {
	unlock, err := j.cache.lock(ctx, wheelLock)
	if err != nil {
		return err
	}
	defer unlock()
	for _, w := range j.recipe.Wheels {
		file, err := j.fetchWheel(ctx, w, version)
		if err != nil {
			return fmt.Errorf("wheel %s: %w", w, err)
		}
		sum, err := files.Hash(file)
		if err != nil {
			return err
		}
		if err := w.check(sum); err != nil {
			return errors.Join(fmt.Errorf("wheel %s: %w", w, err), os.Remove(file))
		}
		if err := u.wheel(file, site); err != nil {
			return fmt.Errorf("wheel %s: %w", w, err)
		}
		j.wheels = append(j.wheels, w.String()+" sha256:"+sum)
	}
	slices.Sort(j.wheels)
	return nil
}

// check compares a fetched file with the recipe's hashes.
func (w Wheel) check(sum string) error {
	if len(w.SHA256) == 0 || slices.Contains(w.SHA256, sum) {
		return nil
	}
	return fmt.Errorf("its file has the SHA-256 %s, which the recipe does not list; tare has removed the file. Try again, or check PIP_INDEX_URL and PIP_FIND_LINKS; if the hash is right for this processor and Python, add it to the recipe", sum)
}

var pythonRE = regexp.MustCompile(`^python(3\.[0-9]+)$`)

// python returns the version of the tree's Python, such as 3.11.
func (u *unpacker) python() (string, error) {
	target, err := u.root.Readlink("usr/bin/python3")
	if err == nil {
		if m := pythonRE.FindStringSubmatch(path.Base(target)); m != nil {
			return m[1], nil
		}
	}
	return "", errors.New("wheels: the tree has no Python; add python3 to the list packages")
}

// glibc returns the minor version of the tree's C library 2.x.
func (j *job) glibc() int {
	for _, p := range j.packages {
		if v, ok := strings.CutPrefix(p, "libc6=2."); ok {
			digits := strings.IndexFunc(v, func(r rune) bool { return r < '0' || r > '9' })
			if n, err := strconv.Atoi(v[:max(digits, 0)]); err == nil {
				return n
			}
		}
	}
	return 17 // manylinux2014
}

// partSuffix ends the name of a folder that pip fetches into.
const partSuffix = ".part"

// fetchWheel returns the file of a wheel, from the cache or from the package
// index by pip, which checks it against the index's hash. The caller holds
// wheelLock.
func (j *job) fetchWheel(ctx context.Context, w Wheel, python string) (string, error) {
	dir := filepath.Join(j.cache.dir, "wheels", fmt.Sprintf("%s-%s-%s-%s", strings.ToLower(w.Name), w.Version, python, runtime.GOARCH))
	if found, _ := filepath.Glob(filepath.Join(dir, "*.whl")); len(found) == 1 {
		j.cache.touch(dir)
		return found[0], nil
	}
	arch, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("there are no wheels for this processor, %s", runtime.GOARCH)
	}
	j.builder.say("%s: fetching %s", j.recipe.Name, w)
	tmp := dir + partSuffix
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil { //nolint:gosec // no secret
		return "", err
	}
	tag := "cp" + strings.ReplaceAll(python, ".", "")
	args := []string{"-m", "pip", "download", "--disable-pip-version-check", "--no-input", "-q", "--no-deps", "--only-binary=:all:",
		"--dest", tmp, "--implementation", "cp", "--python-version", python, "--abi", tag, "--abi", "abi3", "--abi", "none"}
	for minor := j.glibc(); minor >= 5; minor-- { // PEP 600
		args = append(args, "--platform", fmt.Sprintf("manylinux_2_%d_%s", minor, arch))
	}
	args = append(args, "--platform", "manylinux2014_"+arch, "--platform", "linux_"+arch, "--platform", "any", w.Name+"=="+w.Version)
	if err := pip(ctx, args); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("pip fetched %d files; expected one", len(found))
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(tmp, dir)); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(found[0])), nil
}

func pip(ctx context.Context, args []string) error {
	var python string
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, p, "-m", "pip", "--version").Run() == nil { //nolint:gosec // one of the two
			python = p
			break
		}
	}
	if python == "" {
		return errors.New("this host lacks pip, which fetches wheels; apt-get install python3-pip")
	}
	cmd := exec.CommandContext(ctx, python, args...) //nolint:gosec // our own arguments
	var said bytes.Buffer
	cmd.Stderr = &limited{w: &said, left: 64 << 10}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return pipError(said.String(), err)
	}
	return nil
}

// pipError turns pip's message into an error that says what to do.
func pipError(said string, err error) error {
	var last string
	for l := range strings.Lines(said) {
		if l, ok := strings.CutPrefix(strings.TrimSpace(l), "ERROR: "); ok {
			last = l
		}
	}
	switch {
	case strings.Contains(said, "No space left"):
		return fmt.Errorf("the disk is full; free space (tare image prune, and the folder TMPDIR, to which pip fetches): %s", last)
	case strings.Contains(said, "NewConnectionError"), strings.Contains(said, "ConnectTimeout"), strings.Contains(said, "Temporary failure"):
		return errors.New("pip cannot reach the package index; check this host's network, or set PIP_INDEX_URL or PIP_FIND_LINKS")
	case strings.Contains(said, "No matching distribution"):
		return fmt.Errorf("the package index has no such wheel for the tree's Python; correct wheels: (%s)", last)
	case last == "":
		return fmt.Errorf("pip failed: %w", err)
	}
	return fmt.Errorf("pip failed: %s", last)
}

// wheel unpacks a wheel (PEP 427) into the folder site of the tree.
func (u *unpacker) wheel(file, site string) error {
	f, err := os.Open(file) //nolint:gosec // our own cache
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	st, err := f.Stat()
	if err != nil {
		return err
	}
	members, err := listWheel(f, st.Size(), site)
	if err != nil {
		return err
	}
	for _, m := range members {
		r, err := m.file.Open()
		if err != nil {
			return fmt.Errorf("member %s: %w", m.file.Name, err)
		}
		err = u.file(m.to, m.mode, m.content(r))
		_ = r.Close()
		if err != nil {
			return fmt.Errorf("member %s: %w", m.file.Name, err)
		}
	}
	return nil
}

// wheelMember is a file of a wheel with its place in the tree.
type wheelMember struct {
	file   *zip.File
	to     string
	mode   fs.FileMode
	script bool
}

// content returns the member's content; in a script, the #! line names the tree's Python.
// Read it to the end: the zip reader reports a wrong checksum there, and an error if the
// member is longer than declared.
func (m wheelMember) content(r io.Reader) io.Reader {
	if !m.script {
		return r
	}
	b := bufio.NewReader(r)
	if head, err := b.Peek(len("#!python")); err != nil || string(head) != "#!python" {
		return b
	}
	if _, err := b.ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
		return b
	}
	return io.MultiReader(strings.NewReader("#!/usr/bin/python3\n"), b)
}

// listWheel reads and checks a wheel's listing, and returns the members with their places.
func listWheel(r io.ReaderAt, size int64, site string) ([]wheelMember, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a readable wheel: %w", err)
	}
	if len(z.File) > maxMembers {
		return nil, fmt.Errorf("the wheel has more than %d members", maxMembers)
	}
	var out []wheelMember
	var total uint64
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue // folders are made for their files
		}
		if f.Name == "." || !fs.ValidPath(f.Name) || strings.ContainsAny(f.Name, "\\\x00") {
			return nil, fmt.Errorf("the member %q points outside the tree", f.Name)
		}
		if !f.Mode().IsRegular() {
			return nil, fmt.Errorf("the member %s is not a regular file", f.Name)
		}
		if f.UncompressedSize64 > 1<<20 && f.UncompressedSize64/maxRatio > f.CompressedSize64 {
			return nil, fmt.Errorf("the member %s unpacks to more than %d times its size", f.Name, maxRatio)
		}
		if total += f.UncompressedSize64; total > maxBytes || f.UncompressedSize64 > maxBytes {
			return nil, fmt.Errorf("the wheel unpacks to more than %d GiB", maxBytes>>30)
		}
		m := wheelMember{file: f, mode: 0o644}
		if f.Mode()&0o111 != 0 {
			m.mode = 0o755
		}
		if m.to, m.script = wheelPlace(f.Name, site); m.to == "" {
			continue
		}
		if m.script {
			m.mode = 0o755
		}
		out = append(out, m)
	}
	return out, nil
}

// wheelPlace returns the place of a member. Members of NAME.data/KIND/ go to the places of
// PEP 427; "" means that no program needs the member at run time.
func wheelPlace(name, site string) (to string, script bool) {
	first, rest, ok := strings.Cut(name, "/")
	if !ok || !strings.HasSuffix(first, ".data") {
		return path.Join(site, name), false
	}
	kind, rest, _ := strings.Cut(rest, "/")
	switch {
	case rest == "":
		return "", false
	case kind == "purelib" || kind == "platlib":
		return path.Join(site, rest), false
	case kind == "scripts":
		return path.Join("/usr/local/bin", rest), true
	case kind == "data":
		return path.Join("/usr/local", rest), false
	}
	return "", false // headers
}
