package observer

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tare/host/cgroup"
)

// shim is a process of containerd's that watches the containers of a pod. containerd starts it in its own control
// group, unless the option ShimCgroup says otherwise, so that the pod's group does not have its CPU time.
type shim struct {
	Pid     int    `json:"pid"`
	Program string `json:"program"` // base name of its first argument
}

// shims lists those of a pod that are not in its group, by process ID. A shim's arguments say for which container it
// was started, and the control groups of a pod's containers have the containers' IDs in their names (containerd's
// core/runtime/v2/README.md). Without a container nothing is found.
func shims(root string, pod *cgroup.Group) []shim {
	inside, err := pod.Procs()
	if err != nil {
		return nil
	}
	ids := containersOf(pod)
	var found []shim
	all, _ := os.ReadDir(root) // what cannot be read has no shims
	for _, d := range all {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		args := strings.Split(process(filepath.Join(root, d.Name())).text("cmdline"), "\x00")
		program, at := filepath.Base(args[0]), slices.Index(args, "-id")
		if strings.HasPrefix(program, "containerd-shim") && at >= 0 && at+1 < len(args) &&
			slices.Contains(ids, args[at+1]) && !slices.Contains(inside, pid) {
			found = append(found, shim{pid, program})
		}
	}
	return found
}

// containersOf lists the IDs of a pod's containers.
func containersOf(pod *cgroup.Group) (ids []string) {
	children, _ := pod.Children() // none: the pod is gone
	for _, rel := range children {
		if id := containerID.FindString(filepath.Base(rel)); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
