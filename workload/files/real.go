package files

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/workload/child"
	"tare/workload/output"
)

// long ago is when prepared files were changed last: git and npm look at that.
func longAgo() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }

// program is a load that runs a real program on prepared files. All paths are below config.Dir.
type program struct {
	config
	t       *tree
	prepare func(*program) error // the files, once
	reset   []string             // what a run makes: removed before each, untimed
	run     func(*program) error // timed
	found   func(*program) error // is what was made there?
}

func programs() map[string]program {
	return map[string]program{
		untar:   {prepare: (*program).archive, reset: []string{"out"}, run: (*program).untar, found: (*program).untarred},
		compile: {prepare: (*program).sources, reset: []string{"obj"}, run: (*program).compile, found: (*program).compiled},
		status:  {prepare: (*program).repository, run: (*program).status, found: (*program).kept},
		install: {prepare: (*program).packages, reset: []string{"project/node_modules", "project/package-lock.json", "npm"}, run: (*program).install, found: (*program).installed},
	}
}

func newProgram(c config) (*program, error) {
	p, ok := programs()[c.Load]
	if !ok {
		return nil, fmt.Errorf("there is no load %q", c.Load)
	}
	p.config, p.t = c, newTree(filepath.Join(c.Dir, "tree"), c)
	return &p, nil
}

func (p *program) at(name string) string { return filepath.Join(p.Dir, name) }

func (p *program) layout() error { return p.prepare(p) }
func (p *program) check() error  { return p.found(p) }

func (p *program) round(rec *recorder) error {
	for _, name := range p.reset {
		if err := os.RemoveAll(p.at(name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"out", "obj", "tmp"} {
		if err := os.MkdirAll(p.at(name), 0o755); err != nil { //nolint:gosec // as other programs make them
			return err
		}
	}
	start := time.Now()
	if err := p.run(p); err != nil {
		return err
	}
	rec.run(p.Load, time.Since(start))
	return nil
}

// call runs a command in a directory and returns what it printed.
func (p *program) call(dir string, args ...string) (string, error) {
	var out, errs output.Tail
	out.Most = 16 << 20
	cmd := child.Command(context.Background(), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.at(dir), &out, &errs
	// Temporary files and caches of the programs are on the measured file system too.
	cmd.Env = append(os.Environ(), "HOME="+p.Dir, "TMPDIR="+p.at("tmp"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"npm_config_cache="+p.at("npm"), "npm_config_update_notifier=false")
	if err := child.Run(cmd, nil); err != nil {
		return "", fmt.Errorf("%s: %w: %s", args[0], err, output.Said(errs.String()+"\n"+out.String()))
	}
	return out.String(), nil
}

// put writes a file, and the directories above it.
func (p *program) put(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(p.at(name)), 0o755); err != nil { //nolint:gosec // as other programs make them
		return err
	}
	return os.WriteFile(p.at(name), content, 0o644) //nolint:gosec // likewise
}

// relative is a file's path within the tree.
func (p *program) relative(letter string, i int) string {
	return strings.TrimPrefix(p.t.path(letter, i), p.t.top+"/")
}

// pack writes an archive of files, with these contents.
func pack(w io.Writer, names []string, content func(int) []byte) error {
	tw := tar.NewWriter(w)
	for i, name := range names {
		b := content(i)
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), ModTime: longAgo()}); err != nil {
			return err
		}
		if _, err := tw.Write(b); err != nil {
			return err
		}
	}
	return tw.Close()
}

func (p *program) archive() error {
	if err := os.MkdirAll(p.Dir, 0o755); err != nil { //nolint:gosec // as other programs make them
		return err
	}
	f, err := os.Create(p.at("tree.tar"))
	if err != nil {
		return err
	}
	var names []string
	for i := range p.Files {
		names = append(names, p.relative("f", i))
	}
	return errors.Join(pack(f, names, p.t.content), f.Close())
}

func (p *program) untar() error {
	_, err := p.call("out", "tar", "-xf", p.at("tree.tar"), "--no-same-owner")
	return err
}

func (p *program) untarred() error {
	return expect(p.at("out"), "", p.Files, int64(p.Files)*p.Size)
}

// units is the number of C files besides the main one. Each includes its share of the tree,
// whose files are headers with a function and a comment.
const units = 8

func (p *program) sources() error {
	parts := make([]bytes.Buffer, units)
	calls := make([]string, units)
	for i := range p.Files {
		head := fmt.Sprintf("static int f%d(int x) { return x + %d; }\n/* ", i, i)
		pad := max(0, int(p.Size)-len(head)-len(" */\n"))
		if err := p.put(p.header(i), []byte(head+strings.Repeat("x", pad)+" */\n")); err != nil {
			return err
		}
		u := i % units
		_, _ = fmt.Fprintf(&parts[u], "#include %q\n", p.relative("f", i))
		calls[u] += fmt.Sprintf("  s = f%d(s);\n", i)
	}
	main := "#include <stdio.h>\n"
	sum := ""
	for u := range units {
		_, _ = fmt.Fprintf(&parts[u], "int part%d(int s) {\n%s  return s;\n}\n", u, calls[u])
		if err := p.put(source(u), parts[u].Bytes()); err != nil {
			return err
		}
		main += fmt.Sprintf("int part%d(int);\n", u)
		sum += fmt.Sprintf(" + part%d(0)", u)
	}
	main += "int main(void) { printf(\"%ld\\n\", 0L" + sum + "); return 0; }\n"
	return p.put(source(units), []byte(main))
}

func (p *program) header(i int) string { return "tree/" + p.relative("f", i) }

func source(u int) string { return "src/u" + strconv.Itoa(u) + ".c" }

// compile compiles as many files at once as there are threads, and links them.
func (p *program) compile() error {
	errs := make([]error, p.Threads)
	var wg sync.WaitGroup
	for k := range p.Threads {
		wg.Go(func() {
			for u := k; u <= units && errs[k] == nil; u += p.Threads {
				_, errs[k] = p.call("obj", "gcc", "-O0", "-I", p.t.top, "-c", p.at(source(u)))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	args := []string{"gcc", "-o", "prog"}
	for u := range units + 1 {
		args = append(args, fmt.Sprintf("u%d.o", u))
	}
	_, err := p.call("obj", args...)
	return err
}

// compiled runs the program: it adds up the numbers of all headers.
func (p *program) compiled() error {
	if err := expect(p.t.top, "", p.Files, int64(p.Files)*p.Size); err != nil {
		return err
	}
	out, err := p.call("obj", p.at("obj/prog"))
	if want := strconv.Itoa(p.Files * (p.Files - 1) / 2); err == nil && strings.TrimSpace(out) != want {
		return fmt.Errorf("the compiled program says %q, but its headers make %s", strings.TrimSpace(out), want)
	}
	return err
}

// changedOf sets the share of files that change after the commit, and of untracked files.
const (
	changedOf = 50
	edit      = "changed"
)

func (p *program) changed() int { return (p.Files + changedOf - 1) / changedOf }

func (p *program) git(args ...string) (string, error) {
	return p.call("tree", append([]string{"git", "-c", "safe.directory=*", "-c", "user.name=tare", "-c", "user.email=tare@localhost",
		"-c", "gc.auto=0", "-c", "init.defaultBranch=main"}, args...)...)
}

func (p *program) repository() error {
	if err := p.t.make(); err != nil {
		return err
	}
	// Every git status would read files again that are as new as git's index.
	for i := range p.Files {
		if err := os.Chtimes(p.t.path("f", i), longAgo(), longAgo()); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "tree"}} {
		if _, err := p.git(args...); err != nil {
			return err
		}
	}
	for i := range p.changed() {
		edited, created := "tree/"+p.relative("f", i*changedOf), "tree/"+p.relative("n", i*changedOf)
		if err := errors.Join(p.put(edited, []byte(edit)), p.put(created, []byte(edit))); err != nil {
			return err
		}
	}
	return nil
}

// status checks what git found. A wrong answer must not be measured.
func (p *program) status() error {
	out, err := p.git("status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return err
	}
	changed, created := strings.Count(out, " M "), strings.Count(out, "?? ")
	if want := p.changed(); changed != want || created != want {
		return fmt.Errorf("git status found %d changed and %d new files, but %d of each were made", changed, created, want)
	}
	return nil
}

func (p *program) kept() error {
	n := p.changed()
	return expect(p.t.top, ".git", p.Files+n, int64(p.Files-n)*p.Size+int64(2*n*len(edit)))
}

// members are the files of the package of one leaf.
func (p *program) members(leaf int) (files []int) {
	for i := leaf; i < p.Files; i += len(p.t.leaves) {
		files = append(files, i)
	}
	return files
}

func packageName(leaf int) string { return "tare-" + strconv.Itoa(leaf) }

func manifest(leaf int) []byte {
	return []byte(`{"name":"` + packageName(leaf) + `","version":"1.0.0"}`)
}

// packages makes a package of each leaf of the tree, and a project that needs them all.
func (p *program) packages() error {
	needs := map[string]string{}
	for leaf := range p.t.leaves {
		names, files := []string{"package/package.json"}, p.members(leaf)
		for _, i := range files {
			names = append(names, fmt.Sprintf("package/lib/f%d.js", i))
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		err := pack(z, names, func(k int) []byte {
			if k == 0 {
				return manifest(leaf)
			}
			return p.t.content(files[k-1])
		})
		if err := errors.Join(err, z.Close()); err != nil {
			return err
		}
		file := "packages/" + packageName(leaf) + ".tgz"
		if err := p.put(file, b.Bytes()); err != nil {
			return err
		}
		needs[packageName(leaf)] = "file:../" + file
	}
	b, err := json.Marshal(map[string]any{"name": "project", "version": "1.0.0", "private": true, "dependencies": needs})
	if err != nil {
		return err
	}
	return p.put("project/package.json", b)
}

func (p *program) install() error {
	_, err := p.call("project", "npm", "install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	return err
}

func (p *program) installed() error {
	bytes := int64(p.Files) * p.Size
	for leaf := range p.t.leaves {
		bytes += int64(len(manifest(leaf)))
	}
	return expect(p.at("project/node_modules"), ".package-lock.json", p.Files+len(p.t.leaves), bytes)
}
