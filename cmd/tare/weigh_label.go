package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// label names a command in tables and folders: its program.
func label(args []string) string {
	s := strings.Trim(unfit.ReplaceAllString(filepath.Base(args[0]), "-"), "-_")
	if len(s) > 20 {
		s = s[:20]
	}
	if s == "" || s == "sentinel" {
		return "command"
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return "command"
	}
	return strings.ToLower(s)
}

// serverLabel names a server. Of a text for a shell, what comes before the server prepares for it, and the
// server is the last command; a shell's own name says nothing.
func serverLabel(text string, shell bool) string {
	words, err := shellquote.Split(text)
	if err != nil || len(words) == 0 { // only a shell understands it
		words = strings.Fields(text)
	}
	if !shell && len(words) > 2 && slices.Contains([]string{"sh", "bash", "dash", "ash"}, filepath.Base(words[0])) && strings.HasSuffix(words[1], "c") {
		return serverLabel(words[2], true)
	}
	if shell {
		words = lastCommand(text)
	}
	if words = unwrapped(words); len(words) == 0 {
		return "server"
	}
	return label(words)
}

// lastCommand is the last command of a shell's text that can be a server; of a pipe, its first part can.
func lastCommand(text string) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil { // only its own shell understands it
		return strings.Fields(text)
	}
	var last []string
	var visit func(syntax.Node) bool
	visit = func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			return false
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe {
				syntax.Walk(n.X, visit)
				return false
			}
		case *syntax.CallExpr:
			var words []string
			for _, w := range n.Args {
				word, _ := expand.Literal(nil, w) // a command within it has no word
				words = append(words, word)
			}
			if own := unwrapped(words); len(own) > 0 && own[0] != "" && !slices.Contains(helpers(), own[0]) {
				last = words
			}
		}
		return true
	}
	syntax.Walk(file, visit)
	return last
}

// helpers are what a shell's text has beside a server.
func helpers() []string {
	return strings.Fields("wait cd export set trap exit true : echo printf sleep mkdir rm cp mv chown chmod ln cat touch umask ulimit")
}

// unwrapped leaves out the variables that are set for a command, and programs that only start another.
func unwrapped(words []string) []string {
	for len(words) > 0 {
		switch w := words[0]; {
		case variable.MatchString(w):
			words = words[1:]
		case slices.Contains([]string{"exec", "env", "nohup", "setsid"}, w):
			words = options(words[1:], nil)
		case filepath.Base(w) == "setpriv":
			words = options(words[1:], strings.Fields("--reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set --securebits --selinux-label --apparmor-profile --pdeathsig"))
		case filepath.Base(w) == "nice":
			words = options(words[1:], []string{"-n"})
		case slices.Contains([]string{"gosu", "su-exec"}, filepath.Base(w)) && len(words) > 1:
			words = words[2:]
		default:
			return words
		}
	}
	return words
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// options leaves out options, of which some have their value in a word of their own.
func options(words, valued []string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		n := 1
		if slices.Contains(valued, words[0]) {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	return words
}
