package record

import "cmp"

// Host describes the machine that results came from. Unknown strings are "",
// never a guess.
type Host struct {
	Hostname       string            `json:"hostname"`
	OS             string            `json:"os"`     // PRETTY_NAME of os-release
	Kernel         string            `json:"kernel"` // uname -r
	Arch           string            `json:"arch"`
	CPUModel       string            `json:"cpu_model"`
	Sockets        int               `json:"sockets"`
	Cores          int               `json:"cores"`
	Threads        int               `json:"threads"`
	MemoryBytes    int64             `json:"memory_bytes"`
	Governor       string            `json:"governor"`
	Clocksource    string            `json:"clocksource"`
	Virtualization string            `json:"virtualization"` // "none", or the hypervisor's name
	KVM            string            `json:"kvm"`            // "works", or why it does not
	Cgroups        string            `json:"cgroups"`        // v1, v2 or hybrid
	Data           string            `json:"data,omitempty"` // file system and disk of the directory for data; "" on a cluster and the model
	Mitigations    map[string]string `json:"mitigations,omitempty"`
	Tools          map[string]string `json:"tools,omitempty"` // name to version, runtimes included
	Warnings       []Warning         `json:"warnings,omitempty"`
}

// Node is a machine that trials run on. Its name is unique at its site.
type Node struct {
	Name string `json:"name"`
	Host Host   `json:"host"`
	// Machine is the same for nodes that share one, as those of kind (https://kind.sigs.k8s.io) do. "": the node is a
	// machine of its own.
	Machine string `json:"machine,omitempty"`
}

// On is the machine of the node.
func (n *Node) On() string { return cmp.Or(n.Machine, n.Name) }
