package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Find returns the path of the program that args start, as the calling thread sees it. A name
// without a slash is looked up in the last PATH of env (environ(7)); a relative path is below
// dir, or / if dir is "".
func Find(args, env []string, dir string) (string, error) {
	name := args[0]
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join("/", dir, name), nil
	}
	list := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			list = v
		}
	}
	for _, d := range filepath.SplitList(list) {
		if !filepath.IsAbs(d) {
			continue // of the program that looks, not of the sandbox
		}
		if path, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("cannot find the program %q in PATH=%s; install it there, or give its path", name, list)
}

// Credential is the user for os/exec: nil for root, which the harness's own programs are.
func (u User) Credential() *syscall.Credential {
	if u.Root() {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}
