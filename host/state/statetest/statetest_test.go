package statetest

import "testing"

// A runtime's leftovers of our containers are ours wherever they are, and what other
// programs make is not.
func TestOurs(t *testing.T) {
	names := []string{"trial7-", "/tmp/TestIt123"}
	for thing, want := range map[string]bool{
		"cgroup /sys/fs/cgroup/memory/tare":                             true,
		"cgroup /sys/fs/cgroup/memory/trial7-1-3-main":                  true,
		"cgroup /sys/fs/cgroup/system.slice/crun-trial7-1-3-main.scope": true,
		"cgroup /sys/fs/cgroup/memory/docker/0123":                      false,
		"cgroup /sys/fs/cgroup/memory/trial8-1-3-main":                  false,
		"mount /run/tare/x/root of / (overlay)":                         true,
		"mount /mnt of /var/lib/tare/images/node (ext4)":                true,
		"mount /tmp/TestIt123/002/root of / (tmpfs)":                    true,
		"mount /run/runsc/trial7-1-3-main of / (tmpfs)":                 true,
		"mount /var/lib/docker/overlay2/0123/merged of / (overlay)":     false,
		"mount /run/user/0 of / (tmpfs)":                                false,
		"netns lab-k8s-node1":                                           false,
		"netns tare-trial7-1-server":                                    true,
		"link veth0":                                                    false,
		"link tare0123456789":                                           true,
		"file /run/tare/oci/runc":                                       true,
		"process /proc/12 of trial8-1-3-main":                           true,
	} {
		if got := Ours(thing, names...); got != want {
			t.Errorf("%s: %v", thing, got)
		}
	}
}
