// Package objects has the workloads objects and claims. They create objects on the API server of a cluster, in steps. The workload
// claims creates PersistentVolumeClaims, and follows each until its first byte is written and until it is gone again.
//
// The data path: 1. Roles writes the command line of the load generator, which is this binary (`tare internal
// objects`, package cluster/objects) and may use the cluster's API; 2. it creates the objects of one step after
// another, waits for each step's pods or volumes, and prints a Line for each step (report.go); 3. Parse checks the
// lines, and makes samples of them (parse.go, stages.go) and a verdict on what bound each step (bound.go).
//
// This package knows nothing of Kubernetes but the names of its kinds, so that old results are read anywhere.
package objects

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/objects/loadfile"
	"tare/workload/objects/pace"
)

// New returns the workload.
func New() workload.Workload { return objects{} }

type objects struct{}

// Kinds of objects.
const (
	Pod        = "pod"
	Deployment = "deployment"
	ConfigMap  = "configmap"
	Secret     = "secret"
	Service    = "service"
	VM         = "vm" // a VirtualMachineInstance of KubeVirt

	Claim = "claim" // only of the workload claims
)

// Nodes that the pods of objects run on.
const (
	Untainted = "untainted"
	Simulated = "simulated"
	Any       = "any"
	Own       = "own"
)

// NodeType is the label of simulated nodes; its value is Simulated (https://kwok.sigs.k8s.io).
const NodeType = "type"

// Programs of the containers of a file's pods.
const (
	AsWritten = "file"
	Pause     = "pause"
)

// Parameters of loads that build the images of their pods.
const (
	Build     = "build"
	BuildSize = "build-size"
)

// HasPods reports whether objects of a kind have pods, which are waited for.
func HasPods(kind string) bool { return kind == Pod || kind == Deployment || kind == VM }

// startOf is the name of the time until what is waited for runs: the pods of a kind, or its guests.
func startOf(kind string) string {
	if kind == VM {
		return "guest_start"
	}
	return "pod_start"
}

func (objects) Name() string { return "objects" }

func (objects) About() string {
	return "creates objects on a cluster's API server in steps, and says what bound each step"
}

// Bounds of the parameters.
const (
	maxCount   = 1_000_000
	maxSteps   = 100
	maxWorkers = 1000
)

func (objects) Params() []param.Param {
	return []param.Param{
		{Name: "object", Type: param.Enum, Default: Pod, Words: []string{Pod, Deployment, ConfigMap, Secret, Service, VM}, Help: "what is created; each deployment has one pod, which waits; a vm is a virtual machine of KubeVirt, without a disk"},
		{Name: "count", Type: param.Int, Default: "60", Min: 1, Max: maxCount, Help: "objects after the last step"},
		{Name: "steps", Type: param.Int, Default: "3", Min: 1, Max: maxSteps, Help: "steps in which the count is reached; the next one begins when all pods of the last one run"},
		{Name: "namespaces", Type: param.Int, Default: "1", Min: 1, Max: 10_000, Help: "new namespaces that take the objects in turn"},
		{Name: "rate", Type: param.String, Offered: true, Default: "0", Valid: func(text string) error { _, err := pace.Parse(text); return err }, Help: "objects a second, on a fixed schedule (open loop), or a schedule of clusterloader2 in words; 0: each worker creates the next one when the last one is created (closed loop)"},
		{Name: "workers", Type: param.Int, Default: "8", Min: 1, Max: maxWorkers, Help: "requests at the same time, at most"},
		{Name: "churn", Type: param.Float, Default: "0", Min: 0, Max: 100, Help: "percent of the objects that each step deletes and creates again, when its pods run"},
		{Name: "nodes", Type: param.Enum, Default: Untainted, Words: []string{Untainted, Simulated, Any, Own}, Help: "where pods run: nodes without taints; simulated ones (kwok, label type=simulated); both; or the load's own node, whose memory and disks the load then reads"},
		{Name: "class", Type: param.String, Default: "", Help: "RuntimeClass of the pods; without it, the cluster's default runtime"},
		{Name: "qps", Type: param.Float, Default: "0", Min: 0, Max: 100_000, Help: "the client's own limit of requests a second, as other clients have it; 0: none"},
		{Name: "pause", Type: param.Duration, Default: "0s", Min: 0, Max: 600, Help: "how long the load waits after each step, before the next one"},
		{Name: "timeout", Type: param.Duration, Default: "2m", Min: 1, Max: 3600, Help: "how long a step may take to create its objects and, again, to have its pods run; afterwards the load ends"},
		{Name: loadfile.Param, Type: param.File, Names: loadfile.Names, Help: "a configuration of cluster-loader or kube-burner, which replaces object, count, steps, namespaces, rate and churn (docs/workloads/objects-files.md)"},
		{Name: "vars", Type: param.String, Help: "values of the {{.NAMES}} in a configuration of kube-burner: QPS=20 JOB_ITERATIONS=9"},
		{Name: Build, Type: param.String, Valid: repository, Help: "HOST/REPOSITORY to which the load pushes an image for each object, which it builds first (a pipeline); without it, the pods have tare's image"},
		{Name: BuildSize, Type: param.Size, Default: "1MiB", Min: 1, Max: 1 << 30, Help: "with build: size of the files of an image, which gzip can halve"},
		{Name: "containers", Type: param.Enum, Default: AsWritten, Words: []string{AsWritten, Pause}, Help: "what the pods of a file run; file: what the file says; pause: only /tare-pause of tare's image"},
	}
}

func (objects) Responses(v param.Values) []record.Response {
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Help: "objects a second while objects are created, of all steps"}
	want, err := expected(v, v.Str("object"))
	if err != nil {
		return []record.Response{rate} // Roles reports the error
	}
	if want.open() {
		rate.Better = record.Neither
	}
	latency := record.Response{Name: "api_latency_p99", Unit: record.Second, Better: record.Lower,
		Help: "99th percentile of the time of a request that changes an object, from when it was due to its answer"}
	if !want.pods {
		return []record.Response{latency, rate}
	}
	what := "pod"
	if v.Str("object") == VM {
		what = "guest"
	}
	start := startOf(v.Str("object"))
	out := []record.Response{
		{Name: start + "_p50", Unit: record.Second, Better: record.Lower, Help: "median time from when a " + what + "'s object was due to when the watch said that the " + what + " runs"},
		{Name: start + "_p99", Unit: record.Second, Better: record.Lower, Help: "99th percentile of that"},
		latency, rate,
	}
	if v.Str(Build) != "" {
		out = append(out, imageTimes()...)
	}
	if v.Str("nodes") == Own {
		out = append(out, perPod()...)
	}
	return out
}

// roleLoad is the name of the only role.
const roleLoad = "load"

// removing is how long the namespaces, and the pods with them, may take to go.
const removing = 10 * time.Minute

func (objects) Roles(v param.Values) ([]workload.Role, error) {
	want, err := expected(v, v.Str("object"))
	if err != nil {
		return nil, err
	}
	if err := check(v, want); err != nil {
		return nil, err
	}
	var volumes []volume.Volume
	if v.Str(Build) != "" {
		volumes = volume.AtData(volume.Disk)
	}
	simulated := 0
	if v.Str("nodes") == Simulated {
		simulated = v.Int("count")
		if v.Str(loadfile.Param) != "" {
			simulated = 1 // tare does not count the pods of a file
		}
	}
	return []workload.Role{{
		Name: roleLoad, Mode: workload.Exec, Args: arguments((objects{}).Params(), v), API: true, Volumes: volumes, Simulated: simulated, Until: measuredLine, Expect: want.takes,
		Within: want.takes + want.waits(v.Duration("timeout")) + removing,
	}}, nil
}

// check refuses parameters that do not go together.
func check(v param.Values, want *expect) error {
	file := v.Str(loadfile.Param) != ""
	if file {
		for _, p := range (objects{}).Params() {
			if slices.Contains([]string{"object", "count", "steps", "namespaces", "rate", "churn"}, p.Name) && v.Str(p.Name) != p.Default {
				return &param.ValueError{Param: p.Name, Err: fmt.Errorf("%s has no effect together with file, which says what to create; leave %s out", p.Name, p.Name)}
			}
		}
	}
	count, steps, kind := v.Int("count"), v.Int("steps"), v.Str("object")
	switch {
	case steps > count:
		return fmt.Errorf("steps %d, count %d: each step needs an object; write fewer steps", steps, count)
	case v.Int("namespaces") > count:
		return fmt.Errorf("namespaces %d, count %d: each namespace needs an object; write fewer namespaces", v.Int("namespaces"), count)
	case v.Str("class") != "" && !want.pods:
		return fmt.Errorf("class %s: objects of the kind %s have no pods; leave class out", v.Str("class"), kind)
	case v.Str("nodes") != Untainted && !want.pods:
		return fmt.Errorf("nodes %s: objects of the kind %s have no pods; leave nodes out", v.Str("nodes"), kind)
	case v.Str("nodes") == Simulated && v.Str("class") != "":
		return errors.New("class and nodes: nothing runs on a simulated node, so a RuntimeClass has no effect; leave class out")
	case kind == VM && (v.Str("class") != "" || v.Str(Build) != ""):
		return errors.New("object vm: KubeVirt chooses the image and the RuntimeClass of a machine's pod; leave build and class out")
	case v.Str(Build) != "" && (file || !want.pods || v.Str("nodes") == Simulated || v.Str("nodes") == Any):
		return errors.New("build: only pods and deployments without a file, on real nodes, have images that the load builds; leave build out, or write object: pod and nodes: untainted")
	case v.Str(Build) == "" && v.Str(BuildSize) != "1MiB":
		return errors.New("build-size has no effect without build; add build: HOST/REPOSITORY, or leave build-size out")
	case file && v.Str("nodes") == Own:
		return errors.New("nodes own and file: pods of a file may ask for other nodes; write nodes: any, or leave file out")
	case !file && v.Str("vars") != "":
		return errors.New("vars have no effect without a file; add file: FILE, or leave vars out")
	case !file && v.Str("containers") != AsWritten:
		return errors.New("containers has no effect without a file; add file: FILE, or leave containers out")
	}
	return nil
}

// Notes returns the parts of a file that have no effect here.
func (objects) Notes(v param.Values) []param.FileError {
	if v.Str(loadfile.Param) == "" {
		return nil
	}
	p, err := planOf(v)
	if err != nil {
		return nil // Roles reports the error
	}
	return p.Notes
}

// arguments returns the command line of the load generator: each parameter is a flag.
func arguments(params []param.Param, v param.Values, more ...string) []string {
	args := append([]string{"/tare", "internal", "objects"}, more...)
	for _, p := range params {
		value := v.Str(p.Name)
		switch p.Type {
		case param.Duration:
			value = v.Duration(p.Name).String()
		case param.Int:
			value = strconv.Itoa(v.Int(p.Name))
		case param.Float:
			value = strconv.FormatFloat(v.Float(p.Name), 'g', -1, 64)
		case param.Size:
			value = strconv.FormatInt(v.Size(p.Name), 10)
		}
		if value != "" {
			args = append(args, "--"+p.Name, value)
		}
	}
	return args
}
