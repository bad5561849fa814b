package network

import (
	"fmt"
	"strings"

	"tare/sandbox"
)

// Port is where a sandbox is connected to the bridge: a link in the bridge's namespace,
// seen from the bridge's side.
type Port struct {
	Namespace string // file of the bridge's namespace
	Link      string // name of a veth's end or of a tap in it
}

// PortOf returns the port of a sandbox that Attach has connected. ok is false if n is not on
// the bridge.
func PortOf(n sandbox.Network) (p Port, ok bool) {
	name, err := attached(n)
	if err != nil {
		return Port{}, false
	}
	return Port{Namespace: nsPath(bridgeName), Link: linkName(name)}, true
}

// attached returns the name that was given to Attach.
func attached(n sandbox.Network) (string, error) {
	name, ours := strings.CutPrefix(n.Path, nsPath(""))
	if !ours || checkName(name) != nil {
		return "", fmt.Errorf("network: %q is not the namespace of a sandbox on the bridge", n.Path)
	}
	return name, nil
}
