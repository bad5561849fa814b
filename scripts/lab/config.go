package main

import (
	"bytes"
	"embed"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// Addresses. All are in network namespaces of the lab, except the forwarder's.
const (
	controlAddress = "10.77.0.1"
	nodeNetwork    = "10.77.0.0/24"
	apiPort        = "443" // that of its service, since nothing translates addresses
	services       = "10.96.0.0/16"
	firstService   = "10.96.0.1" // where the API server listens, and pods look for it
	simulatedPods  = "10.78.0.0/16"
	usualPort      = "16443" // of the API server's forwarder on the host's loopback
	registry       = controlAddress + ":" + registryPort
	registryPort   = "5000" // on the host's loopback too, if it is free there
)

// Names that everything outside of the lab's folder has, so that down finds it.
const (
	groupName = "lab-k8s" // the control group; its children are the nodes and control
	control   = "control"
)

// node is one real node.
type node struct {
	name    string
	address string
	pods    string // network of its pods
	gateway string // of its pods: the node's end of the bridge
}

func nodes() []node {
	return []node{
		{"node1", "10.77.0.11", "10.77.1.0/24", "10.77.1.1"},
		{"node2", "10.77.0.12", "10.77.2.0/24", "10.77.2.1"},
	}
}

// Where a node sees its own files: node.go mounts them there.
const (
	nodeBin  = "/run/lab/bin"
	nodeEtc  = "/run/lab/etc"
	criSock  = "/run/containerd/containerd.sock"
	usualBin = "/usr/local/lib/tare/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// templates are the configuration files of a node, and the objects of the cluster.
//
//go:embed config/*
var templates embed.FS

// facts are what the templates ask for.
type facts struct {
	Name, Address, Pods, Gateway string
	Bin, Etc, Sock               string
	Group                        string // the node's control group, as the kubelet sees it
	Runc, Runsc                  string // paths of the host's
	Snapshotter                  string
	Snapshotters                 []string // others, each with a runtime class of its own
	Pause, Probe, Pulled         string   // images
	Controller                   string   // the image of the ingress controller
	Arch                         string   // of the processor, as Go names it
	Run, PKI, Stages, Guests     string   // paths: of the cluster, its certificates, what simulated pods and guests go through
	Control, FirstService        string   // addresses
	Registry                     string   // where nodes reach it
	Services, SimulatedPods      string   // networks
	APIPort                      string
	KubeVirt                     string // its version
	Launcher                     string // the image of its launcher pods
	Threads                      string // of a machine
}

// render fills in one of the templates.
func render(name string, f facts) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(templates, "config/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, f)
	return out.Bytes(), err
}

// makeConfig writes a node's configuration. It knows most of the facts itself, but not Group,
// Runc, Runsc and Snapshotter.
func (l *lab) makeConfig(n node, f facts) error {
	f.Name, f.Address, f.Pods, f.Gateway = n.name, n.address, n.pods, n.gateway
	f.Bin, f.Etc, f.Sock, f.Pause, f.Registry = nodeBin, nodeEtc, criSock, pauseImage, registry
	f.Arch = runtime.GOARCH
	for _, name := range []string{"containerd.toml", "runsc.toml", "kubelet.yaml", "cni/10-lab.conflist"} {
		content, err := render(filepath.Base(name), f)
		if err != nil {
			return err
		}
		if err := writeFile(l.node(n, "etc", name), content); err != nil {
			return err
		}
	}
	hosts, err := render("hosts.toml", f)
	if err != nil {
		return err
	}
	// The host and the nodes know the registry by the same name, so that one reference suits both.
	for _, name := range []string{registry, l.registryName()} {
		if err := writeFile(l.node(n, "etc", "certs.d", name, "hosts.toml"), hosts); err != nil {
			return err
		}
	}
	return nil
}

// commands are those that serve the whole cluster: config/daemons.yaml.
type commands struct {
	Control []daemon // the control plane, in the order that it starts in
	Kwok    daemon   // plays the simulated nodes
	Virt    []daemon // KubeVirt's
	Guests  daemon   // plays the guests of simulated nodes
}

func (p places) commands() (c commands, err error) {
	text, err := render("daemons.yaml", facts{
		Run: p.run, PKI: p.pki(""), Stages: p.program(stagesFile), Guests: p.guests(), Control: controlAddress,
		Registry: registry, FirstService: firstService, Services: services, APIPort: apiPort, SimulatedPods: simulatedPods, Launcher: launcherImage,
	})
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	return c, err
}

// simulatedNodes are the objects of n simulated nodes, as one list. Their taint keeps away
// pods that do not ask for them.
func simulatedNodes(n int, arch string) ([]byte, error) {
	object, err := render("simulated.json", facts{Arch: arch})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strings.ReplaceAll(string(object), "NAME", simulatedName(i)))
	}
	out.WriteString("]}")
	return out.Bytes(), nil
}

func simulatedName(i int) string { return fmt.Sprintf("simulated-%04d", i) }
