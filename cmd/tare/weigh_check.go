package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"tare/param"
	"tare/record"
	"tare/report/words"
	"tare/store"
	"tare/study"
	"tare/workload/command"
	found "tare/workload/figures"
)

// valued refuses a flag whose value is the --, which was to end the flags.
func valued(fl *pflag.FlagSet) error {
	var err error
	fl.Visit(func(f *pflag.Flag) {
		list, several := f.Value.(pflag.SliceValue)
		if f.Value.String() == "--" || several && slices.Contains(list.GetSlice(), "--") {
			err = coded(exitUsage, "--%s has no value: what follows it is --; write one before --", f.Name)
		}
	})
	return err
}

// places checks where the study and the results are to go, before anything is measured.
func (f *weighFlags) places() error {
	if f.results != "" && store.Exists(f.results) {
		return coded(exitUsage, "%s holds results already; name a new folder with -o", f.results)
	}
	if f.save == "" {
		return nil
	}
	if st, err := os.Stat(f.save); err == nil && st.IsDir() {
		return coded(exitUsage, "--save %s: it is a directory; write the name of a file", words.Path(f.save))
	}
	if err := unix.Access(filepath.Dir(f.save), unix.W_OK); err != nil {
		return coded(exitUsage, "--save %s: its directory cannot be written to: %w", words.Path(f.save), err)
	}
	return nil
}

// check refuses what would be left out of account, or what a study would refuse in words that are
// not those of the command line.
func (f *weighFlags) check(cat study.Catalogue) error {
	if f.server == "" {
		for _, x := range [][2]string{{"http", f.http}, {"load", f.load}, {"load-image", f.loadImage}, {"ready", f.ready}, {"rate", f.rate}, {"connections", f.connections}} {
			if x[1] != "" {
				return coded(exitUsage, "--%s is for a server; name it with --server, or leave --%[1]s out", x[0])
			}
		}
		if f.cacert != "" || f.insecure {
			return coded(exitUsage, "--cacert and --insecure are for --server with --http https://...; leave them out")
		}
	}
	if f.http == "" && (f.rate != "" || f.connections != "") && f.server != "" {
		return coded(exitUsage, "--rate and --connections are for --http; leave them out")
	}
	if f.loadImage != "" && f.load == "" && f.server != "" {
		return coded(exitUsage, "--load-image is for --load; leave it out")
	}
	if f.writable && f.image == "" {
		return coded(exitUsage, "--writable is for an image; name one with --image, or give a directory of this host to write to with --mount")
	}
	if f.warmup < -1 {
		return coded(exitUsage, "--warmup %d: write 0 or more runs", f.warmup)
	}
	for _, e := range f.env {
		if name, _, _ := strings.Cut(e, "="); name == "" || strings.HasPrefix(name, "-") {
			return coded(exitUsage, "--env %s: %q is not a name; write NAME=VALUE, or NAME for its value here", words.Shell(e), name)
		}
	}
	if err := f.checkIn(cat); err != nil {
		return err
	}
	return f.checkFigures()
}

// checkIn refuses names that are not of sandboxes.
func (f *weighFlags) checkIn(cat study.Catalogue) error {
	var names []string
	for name, info := range cat.Sandboxes {
		if isolates(info) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, k := range f.in {
		if k = strings.TrimSpace(k); k != cat.Native && !slices.Contains(names, k) {
			if cat.Lacks != nil {
				what, _ := cat.Lacks(k)
				return coded(exitUsage, "--in %s: %s; it has %s", words.Shell(k), what, strings.Join(names, ", "))
			}
			return coded(exitUsage, "--in %s: no such sandbox; %s", words.Shell(k), strings.Replace(param.Suggest(meant(k), names), "write one of ", "write ", 1))
		}
	}
	return nil
}

// nameLike is a figure whose first word was to be its name: no group, and no class of characters, is
// before the =.
var nameLike = regexp.MustCompile(`^([^=()\\\[]+)(\[[^\]]*\])?=`)

// checkFigures has the figures checked as the workload does it, each by itself.
func (f *weighFlags) checkFigures() error {
	formats := found.Formats()
	if f.format != "" && !slices.Contains(formats, f.format) {
		return coded(exitUsage, "--format %s: %s", words.Shell(f.format), strings.Replace(param.Suggest(f.format, formats), "write one of ", "write ", 1))
	}
	var taken []string
	for _, r := range command.New().Responses(nil) {
		taken = append(taken, r.Name)
	}
	taken = append(taken, record.Runs)
	for _, of := range []struct {
		flag, kind string
		texts      []string
	}{{"figure", "", f.figures}, {"figure-json", "json:", f.jsonFigures}} {
		for _, text := range of.texts {
			if m := nameLike.FindStringSubmatch(text); m != nil && figureName.FindString(text) == "" {
				return coded(exitUsage, "--%s %s: %q is not a name; write small letters and digits before =, or figure= before a pattern that has a =", of.flag, words.Shell(text), m[1])
			}
			name, word := figure(text, of.kind)
			if _, err := found.Parse(param.Values{found.ParamFigures: word, found.ParamFormat: cmp.Or(f.format, "none")}, taken...); err != nil {
				return coded(exitUsage, "--%s %s: %w", of.flag, words.Shell(text), cmp.Or(errors.Unwrap(err), err))
			}
			taken = append(taken, name)
		}
	}
	return nil
}

// ofFlag is how a study begins a message about the value of a parameter or factor.
var ofFlag = regexp.MustCompile(`^([a-z-]+)(?: = |: )`)

// byFlag says in the words of the command line what a study says of itself.
func byFlag(what, instead string) string {
	if head, rest, ok := strings.Cut(what, " is not possible: "); ok && strings.HasPrefix(head, "workload ") {
		what, instead = rest, strings.TrimPrefix(instead, "change it, or exclude the combination")
	}
	if m := ofFlag.FindStringSubmatch(what); m != nil {
		if flag, ok := flags()[m[1]]; ok {
			what = "--" + flag + " " + unquoted(what[len(m[0]):])
		}
	}
	if instead != "" {
		what += "; " + instead
	}
	return strings.ReplaceAll(what, "write shell: true", "give --shell")
}

// flags are those that set a parameter or a factor, by its name.
func flags() map[string]string {
	out := map[string]string{study.FactorCPULimit: "cpus", study.FactorMemoryLimit: "memory", study.FactorCPUs: "cpuset", "mounts": "mount"}
	for _, same := range []string{"rate", "connections", "ready", "http", "load", "server", "prepare", "env", "cwd", "input", "image", "load-image", "shell"} {
		out[same] = same
	}
	return out
}

// unquoted has the first word without quotes, as it was on the command line.
func unquoted(s string) string {
	if rest, ok := strings.CutPrefix(s, `"`); ok {
		if word, more, ok := strings.Cut(rest, `" `); ok && !strings.ContainsAny(word, ` \`) {
			return word + " " + more
		}
	}
	return s
}

// meant is the sandbox that people mean by the name of its project.
func meant(name string) string {
	switch strings.ToLower(name) {
	case "gvisor":
		return "runsc"
	case "docker", "containerd", "podman":
		return "runc"
	case "qemu", "kvm":
		return "vm"
	}
	return name
}
