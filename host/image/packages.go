package image

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"tare/internal/files"
)

// hostLists is where apt keeps the package lists of the distribution's archives.
const hostLists = "/var/lib/apt/lists"

// apt resolves and fetches packages with the host's apt. It uses the host's sources, keys
// and proxies, ignores the installed packages, and writes nothing to the host's folders.
type apt struct {
	dir  string // tare's own: lists/, debs/
	host string // hostLists
}

// deb is one package file that a resolution asks for.
type deb struct {
	File   string // NAME_VERSION_ARCH.deb, as apt calls it in its archive
	Size   int64
	SHA256 string // in hexadecimal, from the signed index
}

// check returns an error that says what this host lacks and what to do.
func (a apt) check() error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("images are made from Debian packages, and this host lacks %s; use a host with Debian or Ubuntu", tool)
		}
	}
	return nil
}

// options are the arguments that make apt-get resolve as on an empty system.
func (a apt) options() []string {
	var out []string
	for _, o := range []string{
		"Dir::State::status=/dev/null",
		"Dir::State::extended_states=/dev/null",
		"Dir::State::lists=" + filepath.Join(a.dir, "lists"),
		"Dir::Cache::archives=" + filepath.Join(a.dir, "debs"),
		"Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=",
		"APT::Install-Recommends=false", "APT::Install-Suggests=false",
		"APT::Keep-Downloaded-Packages=true",
		"APT::Architecture=" + runtime.GOARCH, "APT::Architectures=" + runtime.GOARCH,
		"Acquire::ForceHash=SHA256",
		"Acquire::Retries=2",
		"Debug::NoLocking=true", // the caller holds a lock of its own
		"Binary::apt-get::DPkg::Post-Invoke=",
	} {
		out = append(out, "-o", o)
	}
	return out
}

// prepare makes apt's folders and links the host's lists into ours.
func (a apt) prepare() error {
	for _, d := range []string{"lists/partial", "debs/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil { //nolint:gosec // apt fetches as another user
			return err
		}
	}
	old, err := filepath.Glob(filepath.Join(a.dir, "lists", "*_*"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	lists, err := a.lists()
	if err != nil {
		return err
	}
	for _, f := range lists {
		if err := os.Symlink(f, filepath.Join(a.dir, "lists", filepath.Base(f))); err != nil {
			return err
		}
	}
	return nil
}

var errNoLists = errors.New("apt has no package lists on this host; run apt-get update, then try again")

// lists returns the host's lists of the distribution itself. Packages of other archives
// with the same names, such as a vendor's newer nodejs, would make images differ from host
// to host.
func (a apt) lists() ([]string, error) {
	all, err := filepath.Glob(filepath.Join(a.host, "*_*"))
	if err != nil {
		return nil, err
	}
	own := a.distribution()
	var out []string
	found, others := false, false
	for _, f := range all {
		if !slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(f, prefix) }) && len(own) > 0 {
			continue
		}
		out = append(out, f)
		if strings.Contains(f, "_Packages") { // for one architecture, for all, or of a flat archive
			other := strings.Contains(f, "_binary-") && !strings.Contains(f, "_binary-"+runtime.GOARCH+"_") && !strings.Contains(f, "_binary-all_")
			found, others = found || !other, others || other
		}
	}
	switch {
	case !found && others:
		return nil, fmt.Errorf("apt's package lists are for another processor, not for %s; run dpkg --add-architecture %s and apt-get update, then try again", runtime.GOARCH, runtime.GOARCH)
	case !found:
		return nil, errNoLists
	}
	return out, nil
}

// distribution returns the prefixes of the lists whose signed release has this host's
// distribution (os-release(5)) as its Origin.
func (a apt) distribution() []string {
	ids := map[string]bool{}
	if f, err := os.Open("/etc/os-release"); err == nil {
		for _, id := range releaseField(f, "ID=", "ID_LIKE=") {
			ids[id] = true
		}
		_ = f.Close()
	}
	releases, err := filepath.Glob(filepath.Join(a.host, "*Release"))
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range releases {
		f, err := os.Open(r) //nolint:gosec // apt's own lists
		if err != nil {
			continue
		}
		for _, origin := range releaseField(f, "Origin:") {
			if ids[origin] {
				out = append(out, strings.TrimSuffix(strings.TrimSuffix(r, "Release"), "In"))
			}
		}
		_ = f.Close()
	}
	return out
}

// releaseField returns the words of these fields, in lower case.
func releaseField(r io.Reader, fields ...string) []string {
	var out []string
	s := bufio.NewScanner(io.LimitReader(r, 16<<10))
	for s.Scan() {
		for _, f := range fields {
			if v, ok := strings.CutPrefix(s.Text(), f); ok {
				out = append(out, strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(v), `"`)))...)
			}
		}
	}
	return out
}

// resolve returns the packages and all that they depend on.
func (a apt) resolve(ctx context.Context, packages []string) ([]deb, error) {
	args := append(a.options(), "-o", "Dir::Cache::archives="+filepath.Join(a.dir, "none"), "-qq", "-y", "--print-uris", "install", "--")
	if err := os.MkdirAll(filepath.Join(a.dir, "none", "partial"), 0o755); err != nil { //nolint:gosec // apt fetches as another user
		return nil, err
	}
	out, err := a.run(ctx, append(args, packages...))
	if err != nil {
		return nil, err
	}
	return parseURIs(bytes.NewReader(out))
}

// fetch downloads the packages that our archive lacks.
func (a apt) fetch(ctx context.Context, packages []string) error {
	_, err := a.run(ctx, append(append(a.options(), "-qq", "-y", "--download-only", "install", "--"), packages...))
	return err
}

// choose returns, for each word, the first alternative that the distribution has for this
// processor.
func (a apt) choose(ctx context.Context, words []string) ([]string, error) {
	var out []string
	for _, w := range words {
		alternatives := strings.Split(w, " | ")
		for i, name := range alternatives {
			if i < len(alternatives)-1 {
				_, err := a.resolve(ctx, []string{name})
				if errors.Is(err, errNoPackage) {
					continue
				}
				if err != nil {
					return nil, err
				}
			}
			out = append(out, name)
			break
		}
	}
	return out, nil
}

// matching returns the packages whose name matches a pattern.
func matching(debs []deb, patterns []string) ([]deb, error) {
	var out []deb
	for _, d := range debs {
		if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, d.name()); return ok }) {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no name of the %d packages matches only: %s; correct the patterns", len(debs), strings.Join(patterns, ", "))
	}
	return out, nil
}

// download downloads exactly these packages, if our archive lacks them.
func (a apt) download(ctx context.Context, debs []deb) error {
	dir := filepath.Join(a.dir, "debs")
	args := append(a.options(), "-qq", "download", "--")
	n := len(args)
	for _, d := range debs {
		if sum, err := files.Hash(filepath.Join(dir, d.File)); err != nil || sum != d.SHA256 {
			args = append(args, d.name()+"="+d.version())
		}
	}
	if len(args) == n {
		return nil
	}
	_, err := a.runIn(ctx, dir, args)
	return err
}

func (a apt) run(ctx context.Context, args []string) ([]byte, error) { return a.runIn(ctx, "", args) }

// runIn is run in a folder, which is where apt-get download writes to.
func (a apt) runIn(ctx context.Context, dir string, args []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "apt-get", args...) //nolint:gosec // our own arguments
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &limited{w: &stderr, left: 64 << 10}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, aptError(stderr.String(), err)
	}
	return stdout.Bytes(), nil
}

var errNoPackage = errors.New("the distribution has no such package")

// aptError turns apt's message into an error that says what to do.
func aptError(said string, err error) error {
	var lines []string
	for l := range strings.Lines(said) {
		if l, ok := strings.CutPrefix(strings.TrimSpace(l), "E: "); ok {
			lines = append(lines, l)
		}
	}
	text := strings.Join(lines, "; ")
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case has("Unable to locate package", "has no installation candidate"):
		return fmt.Errorf("%w: %s; run apt-get update, or correct the list packages", errNoPackage, text)
	case has("enough free space", "No space left", "Disk quota"):
		return fmt.Errorf("the disk is full; free space (tare image prune), or give another --cache: %s", text)
	case has("404  Not Found", "Hash Sum mismatch", "File has unexpected size"):
		return fmt.Errorf("the archive no longer has a version that apt's lists name; run apt-get update, then try again: %s", text)
	case has("Failed to fetch", "Could not resolve", "Could not connect", "Temporary failure"):
		return fmt.Errorf("cannot fetch packages; check that this host reaches its package archive: %s", text)
	case has("unmet dependencies", "broken packages", "held broken"):
		return fmt.Errorf("the packages cannot be installed together; correct the list packages: %s", text)
	case text == "":
		return fmt.Errorf("apt-get failed: %w", err)
	}
	return fmt.Errorf("apt-get failed: %s", text)
}

var uriRE = regexp.MustCompile(`^'([^']+)' (\S+) (\d+) SHA256:([0-9a-f]{64})$`)

// parseURIs reads what apt-get --print-uris prints:
//
//	'http://archive.example.org/.../libc6_2.36-9_amd64.deb' libc6_2.36-9_amd64.deb 2759320 SHA256:8e7e...
func parseURIs(r io.Reader) ([]deb, error) {
	var out []deb
	s := bufio.NewScanner(io.LimitReader(r, 16<<20))
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if line == "" {
			continue
		}
		m := uriRE.FindStringSubmatch(line)
		if m == nil || strings.Contains(m[2], "/") || !strings.HasSuffix(m[2], ".deb") {
			return nil, fmt.Errorf("cannot parse the line %q of apt-get --print-uris", line)
		}
		d := deb{File: m[2], SHA256: m[4]}
		if _, err := fmt.Sscan(m[3], &d.Size); err != nil {
			return nil, fmt.Errorf("cannot parse the size %q of apt-get --print-uris", m[3])
		}
		out = append(out, d)
	}
	return out, s.Err()
}

// name and version of the package, from the file's name.
func (d deb) name() string {
	n, _, _ := strings.Cut(d.File, "_")
	return n
}

func (d deb) version() string {
	_, rest, _ := strings.Cut(d.File, "_")
	v, _, _ := strings.Cut(rest, "_")
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v
}

// limited writes at most left bytes and discards the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := len(b)
	if n > l.left {
		b = b[:l.left]
	}
	l.left -= len(b)
	_, err := l.w.Write(b)
	return n, err
}
