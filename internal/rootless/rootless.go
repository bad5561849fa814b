// Package rootless lets an ordinary user run sandboxes: as root of a user namespace
// (user_namespaces(7)), where mounts, network namespaces and containers are allowed. Control
// groups, other users and devices are not.
//
// The data path: 1. a verb that runs sandboxes calls Enter; 2. Enter executes this program
// again, as the same process, by unshare(1) of util-linux: a program with threads cannot enter
// a user namespace itself; 3. there, Is is true, and RunDir is a directory of the user's.
package rootless

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// variable tells the program in the namespace the user's directory for runs.
const variable = "TARE_ROOTLESS"

// Limits says in one line what an ordinary user's sandboxes lack.
const Limits = "without root, sandboxes run in a user namespace: CPU, memory and processor limits, virtual machines, disks in files, block devices and images with users of their own need sudo"

// Root reports whether this process is root of the machine, or of a container that has users.
func Root() bool { return os.Geteuid() == 0 && !alone() }

// Is reports whether Enter has started this program.
func Is() bool { return os.Getenv(variable) != "" && os.Geteuid() == 0 && alone() }

// RunDir is where things of a run are that need not outlive a boot.
func RunDir() string {
	if dir := os.Getenv(variable); dir != "" && Is() {
		return dir
	}
	return "/run/tare"
}

// alone reports whether this process is in a user namespace with a single user that is not
// root outside.
func alone() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && Single(string(b))
}

// Single reports whether a uid_map has one user, who is root inside and not outside. The file
// has a line for each range: its first user inside, its first user outside, and its length
// (user_namespaces(7)).
func Single(uidMap string) bool {
	f := strings.Fields(uidMap)
	return len(f) == 3 && f[0] == "0" && f[1] != "0" && f[2] == "1"
}

// unshare is a command in a new user namespace and a mount namespace.
func unshare(args ...string) []string {
	return append([]string{"unshare", "--user", "--map-root-user", "--mount", "--"}, args...)
}

// Enter has this program go on in a user namespace. It returns only if there is no need, or if
// Check returns an error.
func Enter(runDir string) {
	if Root() || Is() || Check() != nil {
		return
	}
	self, err := os.Executable()
	path, lerr := exec.LookPath("unshare")
	runDir, aerr := filepath.Abs(runDir)
	if errors.Join(err, lerr, aerr) != nil {
		return
	}
	// On success this does not return. After an error the sandboxes' checks say what is missing.
	_ = syscall.Exec(path, unshare(append([]string{self}, os.Args[1:]...)...), append(os.Environ(), variable+"="+runDir)) //nolint:gosec // this program, as it was called
}

// Check says why this user can run no sandboxes.
func Check() error {
	if Root() || Is() {
		return nil
	}
	try := unshare("true")
	out, err := exec.Command(try[0], try[1:]...).CombinedOutput() //nolint:gosec // constant words
	if err == nil {
		return nil
	}
	return fmt.Errorf("needs root or a user namespace, and this user cannot create one (%s); run tare with sudo, or allow user namespaces: user.max_user_namespaces above 0, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0",
		strings.Join(strings.Fields(string(out)+" "+err.Error()), " "))
}
