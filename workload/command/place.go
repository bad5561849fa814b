package command

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"

	"tare/param"
	"tare/volume"
	"tare/workload"
	"tare/workload/timed"
)

// words splits the command of a parameter, or gives it to a shell; nil if it is empty.
func words(v param.Values, name string) ([]string, error) {
	text := v.Str(name)
	if strings.TrimSpace(text) == "" {
		if name == "command" || name == serverRole {
			return nil, fmt.Errorf("%s is empty; write a program and its arguments", name)
		}
		return nil, nil
	}
	switch shell := v.Str("shell"); shell {
	case "", "none", "false":
	case "true":
		return []string{"/bin/sh", "-c", text}, nil
	default:
		sh, err := shellquote.Split(shell)
		if err != nil || len(sh) == 0 {
			return nil, fmt.Errorf("shell %q is not a program and its arguments; write true, none, or a shell such as bash", shell)
		}
		return append(sh, "-c", text), nil
	}
	args, err := split(name, text)
	if err != nil {
		return nil, err
	}
	if args[0] == "" {
		return nil, fmt.Errorf("%s: the program's name is empty", name)
	}
	for _, a := range args {
		if slices.Contains([]string{"|", "||", "&&", "&", ">", ">>", "<", "2>"}, a) {
			return nil, fmt.Errorf("%s has the word %s, which only a shell understands; write shell: true", name, a)
		}
	}
	return args, nil
}

// split splits the words of a parameter.
func split(name, text string) ([]string, error) {
	out, err := shellquote.Split(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q cannot be split into words: %w; close the quotes, or escape a literal quote with \\", name, text, err)
	}
	return out, nil
}

// exits reads the exit codes that count as success; none for any.
func exits(text string) (out []int, err error) {
	if strings.TrimSpace(text) == "any" {
		return nil, nil
	}
	for w := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(w), 10, 8)
		if err != nil {
			return nil, fmt.Errorf("exit: %q is not an exit code; write numbers from 0 to 255 separated by commas, or any", w)
		}
		out = append(out, int(n))
	}
	return out, nil
}

// Volumes with the directory of a file: that for standard input, and the certificates to trust.
const (
	inputVolume = "input"
	trustVolume = "trust"
)

// beneath mounts the directory of a file, because the file itself cannot be mounted in a virtual
// machine, and returns the file's path there. name is the parameter's and the volume's.
func beneath(name, file string, r *workload.Role) (string, error) {
	if !path.IsAbs(file) || strings.HasSuffix(file, "/") {
		return "", fmt.Errorf("%s: %q is not the absolute path of a file", name, file)
	}
	v := volume.Volume{Name: name, Medium: volume.Bind, Host: path.Dir(file), At: "/tmp/.tare-" + name, ReadOnly: true}
	r.Volumes = append(r.Volumes, v)
	return path.Join(v.Path(), path.Base(file)), nil
}

// surround sets what the parameters of surroundings say.
func surround(v param.Values, r *workload.Role, p *timed.Runs) (err error) {
	r.Image, r.Writable, r.Networked = cmp.Or(v.Str("image"), volume.HostRoot), v.Bool("writable"), v.Bool("network")
	if r.Writable && r.Image == volume.HostRoot {
		return errors.New("writable is for an image: the host's own root file system stays read-only; give a directory to write to with mounts, or write to /tmp")
	}
	if p.Env, err = split("env", v.Str("env")); err != nil {
		return err
	}
	for _, e := range p.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return fmt.Errorf("env: %q is not NAME=VALUE", e)
		}
	}
	if p.Dir = v.Str("cwd"); p.Dir != "" && !path.IsAbs(p.Dir) {
		return fmt.Errorf("cwd: %q is not an absolute path", p.Dir)
	}
	if r.Volumes, err = binds(v.Str("mounts")); err != nil {
		return err
	}
	if in := v.Str("input"); in != "" {
		if p.Input, err = beneath(inputVolume, in, r); err != nil {
			return err
		}
	}
	if r.Image == volume.HostRoot {
		r.Volumes = append(r.Volumes, hidden(p, r.Volumes)...)
	}
	// A directory before those that are mounted in it.
	slices.SortStableFunc(r.Volumes, func(a, b volume.Volume) int { return strings.Compare(a.Path(), b.Path()) })
	return nil
}

// binds reads the parameter mounts.
func binds(text string) ([]volume.Volume, error) {
	ws, err := split("mounts", text)
	if err != nil {
		return nil, err
	}
	var out []volume.Volume
	for i, w := range ws {
		parts := strings.Split(w, ":")
		v := volume.Volume{Name: "mount" + strconv.Itoa(i), Medium: volume.Bind}
		if len(parts) == 3 && (parts[2] == "ro" || parts[2] == "rw") {
			v.ReadOnly = parts[2] == "ro"
			parts = parts[:2]
		}
		if len(parts) != 2 || !path.IsAbs(parts[0]) || !path.IsAbs(parts[1]) {
			return nil, fmt.Errorf("mounts: %q is not HOST:GUEST or HOST:GUEST:ro with two absolute paths", w)
		}
		v.Host, v.At = path.Clean(parts[0]), path.Clean(parts[1])
		if slices.Contains([]string{"/", "/proc", "/dev", "/sys", "/tare"}, v.At) {
			return nil, fmt.Errorf("mounts: a directory cannot be mounted at %s; choose another path in the sandbox", v.At)
		}
		if slices.ContainsFunc(out, func(o volume.Volume) bool { return o.At == v.At }) {
			return nil, fmt.Errorf("mounts: two directories would be mounted at %s", v.At)
		}
		out = append(out, v)
	}
	return out, nil
}

// hidden are directories of the host's root that its own in the sandbox would hide, and that the
// program needs: the working directory, and the program's own, below /tmp or /run.
func hidden(p *timed.Runs, there []volume.Volume) []volume.Volume {
	var out []volume.Volume
	dirs := []string{p.Dir}
	if path.IsAbs(p.Command[0]) {
		dirs = append(dirs, path.Dir(p.Command[0]))
	}
	for i, dir := range dirs {
		dir = path.Clean(dir)
		covers := func(v volume.Volume) bool { return dir == v.Path() || strings.HasPrefix(dir, v.Path()+"/") }
		if !strings.HasPrefix(dir, "/tmp/") && !strings.HasPrefix(dir, "/run/") ||
			slices.ContainsFunc(there, covers) || slices.ContainsFunc(out, covers) {
			continue
		}
		out = append(out, volume.Volume{Name: "own" + strconv.Itoa(i), Medium: volume.Bind, Host: dir, At: dir, ReadOnly: true})
	}
	return out
}
