package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// errPlatform says what to do about an image for other machines.
var errPlatform = fmt.Errorf("this host runs linux/%s; give an image that is built for it, for example from `docker pull --platform linux/%s` and `docker save`", runtime.GOARCH, runtime.GOARCH)

// fits says why programs of an image cannot run here.
func fits(arch, system string) error {
	const here = "linux/" + runtime.GOARCH
	if there := system + "/" + arch; arch != "" && there != here {
		return fmt.Errorf("it is for %s: %w", there, errPlatform)
	}
	return nil
}

// adopt notes in t how the image's programs run, and makes the working directory, as container
// engines do: https://github.com/opencontainers/image-spec/blob/main/config.md
func (a *applier) adopt(t *Tree, c v1.Config) error {
	t.Entrypoint, t.Command, t.Env, t.Dir = c.Entrypoint, c.Cmd, c.Env, path.Join("/", c.WorkingDir)
	if _, st, err := a.walk(t.Dir, true); err != nil || !st.IsDir() {
		return fmt.Errorf("cannot create its working directory %s: %w", t.Dir, errors.Join(err, unix.ENOTDIR))
	}
	passwd, err := a.read("/etc/passwd")
	if err != nil {
		return err
	}
	group, err := a.read("/etc/group")
	if err != nil {
		return err
	}
	u, err := user.GetExecUser(c.User, &user.ExecUser{Home: "/"}, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return fmt.Errorf("its user %q: %w", c.User, err)
	}
	t.User = sandbox.User{UID: uint32(u.Uid), GID: uint32(u.Gid)} //nolint:gosec // the library bounds them
	for _, g := range u.Sgids {
		t.User.Groups = append(t.User.Groups, uint32(g)) //nolint:gosec // likewise
	}
	if !slices.ContainsFunc(t.Env, func(e string) bool { return strings.HasPrefix(e, "HOME=") }) {
		t.Env = append(slices.Clone(t.Env), "HOME="+u.Home)
	}
	t.Problem = a.problem(t)
	return nil
}

// problem says why the image's own command cannot run.
func (a *applier) problem(t *Tree) string {
	words := slices.Concat(t.Entrypoint, t.Command)
	if len(words) == 0 {
		return "" // Unable says that
	}
	program, dirs := words[0], []string{t.Dir}
	if !strings.Contains(program, "/") {
		dirs = strings.Split(stepPath, ":")
		for _, e := range t.Env {
			if v, ok := strings.CutPrefix(e, "PATH="); ok {
				dirs = strings.Split(v, ":")
			}
		}
	} else if path.IsAbs(program) {
		dirs = []string{"/"}
	}
	for _, d := range dirs {
		if _, st, err := a.walk(path.Join(d, program), false); err == nil && st.Mode().IsRegular() {
			return ""
		}
	}
	return fmt.Sprintf("its own command is %s, but it has no program %s; give a command", strings.Join(words, " "), program)
}

// Unable says why the image's own command cannot run, "" if it can.
func (t Tree) Unable() string {
	if len(t.Entrypoint)+len(t.Command) == 0 {
		return "it has no command; give one"
	}
	return t.Problem
}

// read returns a small text file of the image, nothing if it is not there.
func (a *applier) read(name string) ([]byte, error) {
	at, st, err := a.walk(name, false)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := a.root.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(f, maxText))
}

const maxText = 4 << 20 // bytes of a file or document that is read whole
