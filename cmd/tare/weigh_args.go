package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tare/host"
	"tare/param"
	"tare/record"
	"tare/report/words"
	"tare/site"
	"tare/site/remote"
	"tare/study"
)

// completeKinds completes a list of sandboxes.
func completeKinds(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cat, err := offered()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for name, info := range cat.Sandboxes {
		if isolates(info) {
			names = append(names, name)
		}
	}
	return completeList(names, toComplete)
}

// completeList completes the last name of a list with commas; none is offered twice.
func completeList(names []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before, last := "", toComplete
	if i := strings.LastIndex(toComplete, ","); i >= 0 {
		before, last = toComplete[:i+1], toComplete[i+1:]
	}
	var out []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, last) && !slices.Contains(strings.Split(before, ","), name) {
			out = append(out, before+name)
		}
	}
	slices.Sort(out)
	return out, cobra.ShellCompDirectiveNoFileComp
}

// isolates reports whether a sandbox is one to weigh: neither the baseline nor the fake one, nor one that cannot start as it is, such as
// KubeVirt's, whose disk a study must name.
func isolates(info study.SandboxInfo) bool {
	if info.Traits == nil {
		return false
	}
	if info.CheckOptions != nil {
		if v, err := param.Fill(info.Params, nil); err != nil || info.CheckOptions(v) != nil {
			return false
		}
	}
	f := info.Traits(nil).Family
	return f != record.FamilyNative && f != record.FamilyFake
}

// weighing makes the parts of a study of the flags and the command line.
func (f *weighFlags) weighing(args []string, kinds []string, cat study.Catalogue, at surroundings) (*weighing, error) {
	w := &weighing{at: at.name, cluster: f.on != "", sandboxes: []string{cat.Native}, warmup: f.warmup}
	err := f.check(cat)
	if err != nil {
		return nil, err
	}
	if f.timeout != "" {
		if w.timeout, err = duration("timeout", f.timeout); err != nil {
			return nil, err
		}
	}
	if err := f.program(w, args, at); err != nil {
		return nil, err
	}
	f.limits(w)
	if err := f.choose(w, kinds, cat, at); err != nil {
		return nil, err
	}
	return w, w.writable()
}

// program makes the parameters that say what is weighed, and in which surroundings it runs.
func (f *weighFlags) program(w *weighing, args []string, at surroundings) (err error) {
	add := func(name, value string) {
		if value != "" {
			w.params = append(w.params, [2]string{name, value})
		}
	}
	if f.server != "" {
		err = f.service(w, args, add)
	} else {
		err = f.commands(w, args)
	}
	if err != nil {
		return err
	}
	add("shell", f.shell)
	add("prepare", f.prepare)
	if f.input != "" {
		if f.input, err = at.abs(f.input); err != nil {
			return err
		}
		if err := at.exists(f.input); err != nil {
			return coded(exitUsage, "--input: %w", err)
		}
	}
	add("input", f.input)
	add("env", words.Shell(mapped(f.env, environment)...))
	if f.cwd == "" && f.image == "" {
		if f.cwd, err = at.abs("."); err != nil {
			return err
		}
	}
	add("cwd", f.cwd)
	add("image", f.image)
	if f.writable {
		add("writable", "true")
	}
	add("load-image", f.loadImage)
	mounts := make([]string, len(f.mounts))
	for i, m := range f.mounts {
		if mounts[i], err = mount(m, at.abs); err != nil {
			return err
		}
	}
	add("mounts", words.Shell(mounts...))
	list := f.figureWords(w)
	add("figures", strings.Join(list, " "))
	if add("format", f.format); f.format != "" && len(list) == 0 {
		w.figures = []string{"benchmark"}
	}
	if f.network && f.server == "" { // a service has one
		add("network", "true")
	}
	if f.ignore {
		add("exit", "any")
	}
	return nil
}

// limits makes the factors that bound what is weighed.
func (f *weighFlags) limits(w *weighing) {
	if f.cpus != "" {
		w.limits = append(w.limits, [2]string{study.FactorCPULimit, f.cpus})
	}
	if f.cpuset == "" && f.server != "" {
		f.cpuset = study.ApartCPUs
	}
	if f.cpuset != "" {
		w.limits = append(w.limits, [2]string{study.FactorCPUs, f.cpuset})
	}
	if f.memory != "" {
		w.limits = append(w.limits, [2]string{study.FactorMemoryLimit, f.memory})
	}
}

// choose finds the sandboxes to weigh: those that are named, else all that isolate.
func (f *weighFlags) choose(w *weighing, kinds []string, cat study.Catalogue, at surroundings) error {
	for _, k := range f.in {
		if k = strings.TrimSpace(k); !slices.Contains(w.sandboxes, k) {
			w.sandboxes = append(w.sandboxes, k)
		}
	}
	if len(f.in) == 0 {
		for _, k := range kinds {
			switch info := cat.Sandboxes[k]; {
			case !isolates(info):
			case info.Traits(nil).Family == record.FamilyVM && !at.kvm():
				w.unproven = append(w.unproven, k)
			default:
				w.sandboxes = append(w.sandboxes, k)
			}
		}
	}
	if len(w.sandboxes) == 1 {
		return coded(exitUsage, "--in %s leaves no sandbox to weigh; name one, such as runc", strings.Join(f.in, ","))
	}
	return nil
}

// writable refuses a text that a study file cannot hold as it is.
func (w *weighing) writable() error {
	texts := append([]string{w.server}, w.commands...)
	for _, p := range w.params {
		texts = append(texts, p[1])
	}
	for _, t := range texts {
		if !utf8.ValidString(t) || strings.ContainsRune(t, 0) {
			return coded(exitUsage, "%q: a study file holds UTF-8 text without NUL bytes; put the command into a script, and give the script", t)
		}
	}
	return nil
}

// surroundings are what a command line means by relative paths, and what else it needs to know of
// the machine that it is for.
type surroundings struct {
	name   string                       // in messages: here
	abs    func(string) (string, error) // a path there
	exists func(path string) error
	kvm    func() bool // see provenKVM
}

func here() surroundings {
	return surroundings{"here", filepath.Abs, func(path string) error { _, err := os.Stat(path); return err }, provenKVM}
}

// there are those of another machine: relative paths begin where a connection does, and files are
// looked for by the trials.
func there(m *remote.Machine) surroundings {
	abs := func(p string) (string, error) {
		if !path.IsAbs(p) {
			p = path.Join(m.Facts.Home, p)
		}
		return path.Clean(p), nil
	}
	return surroundings{"on " + m.String(), abs, func(string) error { return nil }, func() bool { return m.Facts.KVM }}
}

// weighAt is where to weigh, and what. A mistake in the command line is found before another
// machine is asked anything.
func (a *app) weighAt(ctx context.Context, args []string, f *weighFlags) (where site.Site, w *weighing, cat study.Catalogue, leave func(), err error) {
	leave = func() {}
	if f.on != "" {
		where, w, cat, err = a.weighOnCluster(ctx, args, f)
		return where, w, cat, leave, err
	}
	if cat, err = offered(); err != nil {
		return nil, nil, cat, nil, err
	}
	_, kinds, err := kindsFrom("", nil, nil)
	if err != nil {
		return nil, nil, cat, nil, err
	}
	if f.host == "" {
		if w, err = f.weighing(args, kinds, cat, here()); err != nil {
			return nil, nil, cat, nil, err
		}
		return a.sandboxes(), w, cat, leave, nil
	}
	m := &remote.Machine{Facts: remote.Facts{Home: "/"}}
	tried := *f
	if w, err = tried.weighing(args, kinds, cat, there(m)); err == nil {
		_, err = parsed(w.study(w.pilot()), cat)
	}
	if err != nil {
		return nil, nil, cat, nil, err
	}
	if m, err = a.machine(ctx, f.host); err != nil {
		return nil, nil, cat, nil, err
	}
	w, err = f.weighing(args, kinds, cat, there(m))
	return m, w, cat, func() { _ = m.Close() }, err
}

// figureWords are those of the parameter figures. The weighing gets their names.
func (f *weighFlags) figureWords(w *weighing) []string {
	var out []string
	add := func(texts []string, kind string) {
		for _, t := range texts {
			name, word := figure(t, kind)
			w.figures, out = append(w.figures, name), append(out, word)
		}
	}
	add(f.figures, "")
	add(f.jsonFigures, "json:")
	return out
}

// commands cuts the arguments at each --.
func (f *weighFlags) commands(w *weighing, args []string) error {
	var groups [][]string
	for _, arg := range args {
		switch {
		case arg == "--":
			groups = append(groups, nil)
		case len(groups) == 0:
			groups = [][]string{{arg}}
		default:
			groups[len(groups)-1] = append(groups[len(groups)-1], arg)
		}
	}
	if len(groups) == 0 {
		return coded(exitUsage, "write the command to weigh behind --: tare weigh -- gzip -k FILE; see `tare weigh --help`")
	}
	for i, g := range groups {
		if len(g) == 0 || strings.TrimSpace(g[0]) == "" {
			return coded(exitUsage, "command %d is empty; write a program and its arguments", i+1)
		}
		text := g[0]
		if len(g) > 1 || f.shell == "" && !strings.ContainsAny(text, " \t\n") {
			text = words.Shell(g...)
		}
		if slices.Contains(w.commands, text) {
			return coded(exitUsage, "the command %s is there twice; leave one out", text)
		}
		w.commands = append(w.commands, text)
	}
	w.label = "commands"
	if len(groups) == 1 {
		w.label = label(strings.Fields(w.commands[0]))
	}
	return nil
}

// service makes the parts of a server with its load.
func (f *weighFlags) service(w *weighing, args []string, add func(name, value string)) error {
	switch {
	case len(args) > 0:
		return coded(exitUsage, "--server weighs a server, and %s is a command besides; leave one of them out", args[0])
	case (f.load == "") == (f.http == ""):
		return coded(exitUsage, "write what loads the server: --load with a command, or --http with an address such as 8080/")
	case f.load != "" && f.ready == "":
		return coded(exitUsage, "write when the server is ready: --ready tcp:PORT, http:PORT/PATH or output:TEXT")
	case f.prepare != "" || f.input != "" || f.warmup >= 0:
		return coded(exitUsage, "--prepare, --input and --warmup are for a command, not for a server; leave them out")
	}
	if strings.TrimSpace(f.server) == "" {
		return coded(exitUsage, "--server is empty; write a program and its arguments")
	}
	w.server, w.label, w.builtIn = f.server, serverLabel(f.server, !slices.Contains([]string{"", "none", "false"}, f.shell)), f.http != ""
	address := f.http
	secure := false
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		if port == "" || u.Scheme != "http" && u.Scheme != "https" {
			return coded(exitUsage, "--http %s: the built-in client speaks HTTP; write http:// or https://, or a client of your own with --load", f.http)
		}
		address = port + "/" + strings.TrimPrefix(u.RequestURI(), "/")
		if secure = u.Scheme == "https"; secure {
			add("tls", "full")
			add("server-name", u.Hostname())
		}
	}
	if err := f.trust(secure, add); err != nil {
		return err
	}
	if w.builtIn && f.ready == "" {
		f.ready = "http:" + address
	}
	add("ready", f.ready)
	add("load", f.load)
	add("http", address)
	add("connections", f.connections)
	if f.rate != "" {
		add("loop", "open")
		add("rate", f.rate)
	}
	return nil
}

// trust says which certificates a client with TLS takes.
func (f *weighFlags) trust(secure bool, add func(name, value string)) error {
	switch {
	case f.cacert == "" && !f.insecure:
		return nil
	case !secure:
		return coded(exitUsage, "--cacert and --insecure are for --http https://...; leave them out")
	case f.cacert != "" && f.insecure:
		return coded(exitUsage, "--cacert checks the server's certificate, and --insecure does not; leave one of them out")
	case f.insecure:
		add("trust", "any")
		return nil
	}
	file, err := filepath.Abs(f.cacert)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return coded(exitUsage, "--cacert: %w; write the path of a PEM file", err)
	}
	add("trust", file)
	return nil
}

// environment completes NAME with its value here.
func environment(text string) string {
	if strings.Contains(text, "=") {
		return text
	}
	return text + "=" + os.Getenv(text)
}

// weighKept is how many results without a folder of their own are kept.
const weighKept = 20

// newWeighFolder names the folder of new results and removes the oldest of those that nobody named.
func newWeighFolder(label string, now time.Time) (string, error) {
	base := filepath.Join(host.DefaultDirs().Cache, "weigh")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the folder for results: %w; name another with -o", err)
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return "", fmt.Errorf("cannot read the folder for results: %w; name another with -o", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && len(e.Name()) > len(weighStamp) {
			if _, err := time.Parse(weighStamp, e.Name()[:len(weighStamp)]); err == nil {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	for len(names) >= weighKept {
		_ = os.RemoveAll(filepath.Join(base, names[0])) // what stays is tried again by the next one
		names = names[1:]
	}
	return freeName(filepath.Join(base, now.Format(weighStamp)+"-"+label)), nil
}

const weighStamp = "2006-01-02-150405"
