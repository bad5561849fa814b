package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the tests of the documentation stand on: reading pages, writing blocks
// anew, running lines.

const top = "../.."

// block is a fenced block of a page.
type block struct {
	info []string // the words behind the fence
	text string
	line int // of its first line of text, from 1
	nth  int // of the page's blocks
}

func (b block) is(words ...string) bool {
	return len(b.info) >= len(words) && slices.Equal(b.info[:len(words)], words)
}

func (b block) has(word string) bool { return slices.Contains(b.info, word) }

// page is one file of the documentation; name is its path from the top.
type page struct {
	name   string
	lines  []string
	blocks []block
}

func (p page) prose() string {
	in := false
	var out []string
	for _, l := range p.lines {
		if strings.HasPrefix(strings.TrimLeft(l, " "), "```") {
			in = !in
		} else if !in {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	p := page{name: name, lines: strings.Split(string(raw), "\n")}
	for i := 0; i < len(p.lines); i++ {
		if !strings.HasPrefix(p.lines[i], "```") {
			continue
		}
		b := block{info: strings.Fields(strings.TrimPrefix(p.lines[i], "```")), line: i + 2, nth: len(p.blocks)}
		for i++; i < len(p.lines) && p.lines[i] != "```"; i++ {
			b.text += p.lines[i] + "\n"
		}
		if i == len(p.lines) {
			t.Fatalf("%s:%d: the block does not end", name, b.line-1)
		}
		p.blocks = append(p.blocks, b)
	}
	return p
}

// pages are README.md and everything in docs.
func pages(t *testing.T) []page {
	t.Helper()
	var out []page
	if _, err := os.Stat(filepath.Join(top, "README.md")); err == nil {
		out = append(out, readPage(t, "README.md"))
	}
	err := filepath.WalkDir(filepath.Join(top, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			rel, _ := filepath.Rel(top, path)
			out = append(out, readPage(t, rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d pages were found", len(out))
	}
	return out
}

// rewrite puts text in the place of a block's, under -update.
func rewrite(t *testing.T, name string, b block, text string) {
	t.Helper()
	p := readPage(t, name) // its lines may have moved since b was read
	b = p.blocks[b.nth]
	from, to := b.line-1, b.line-1+strings.Count(b.text, "\n")
	lines := slices.Replace(p.lines, from, to, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	if err := os.WriteFile(filepath.Join(top, name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shell runs one line of a page in a directory as an ordinary user, to whom the directory is
// given, or as root. It runs the line again while another tare holds the host.
func shell(t *testing.T, dir, line string, asRoot bool) (out string, code int) {
	t.Helper()
	env := append(os.Environ(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "NO_COLOR=1")
	if !asRoot {
		tareBy{dir}.own(t, dir)
		env = append(env, append(ownState(dir), "PATH="+asUser()+":"+os.Getenv("PATH"))...)
	}
	deadline := time.Now().Add(20 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = env
		b, err := cmd.CombinedOutput()
		late := ctx.Err()
		cancel()
		var exit *exec.ExitError
		switch {
		case late != nil:
			t.Fatalf("$ %s\ntook more than five minutes\n%s", line, b)
		case err != nil && !errors.As(err, &exit):
			t.Fatalf("$ %s\n%v", line, err)
		case exit != nil && exit.ExitCode() == exitHeld && time.Now().Before(deadline):
			time.Sleep(200 * time.Millisecond)
			continue
		case exit != nil:
			return string(b), exit.ExitCode()
		}
		return string(b), 0
	}
}
