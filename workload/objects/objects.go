// Package objects has the workloads objects and claims: they create objects on the API server of a cluster, in steps. Those
// of claims are PersistentVolumeClaims, whose way is followed until the first byte is written and until they are gone again.
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
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
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

	Claim = "claim" // of the workload claims alone
)

// Nodes that the pods of objects run on.
const (
	Untainted = "untainted"
	Simulated = "simulated"
	Any       = "any"
)

// HasPods reports whether objects of a kind have pods, which are waited for.
func HasPods(kind string) bool { return kind == Pod || kind == Deployment }

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
		{Name: "object", Type: param.Enum, Default: Pod, Words: []string{Pod, Deployment, ConfigMap, Secret, Service}, Help: "what is created; each deployment has one pod, which waits"},
		{Name: "count", Type: param.Int, Default: "60", Min: 1, Max: maxCount, Help: "objects after the last step"},
		{Name: "steps", Type: param.Int, Default: "3", Min: 1, Max: maxSteps, Help: "steps in which the count is reached; the next one begins when all pods of the last one run"},
		{Name: "namespaces", Type: param.Int, Default: "1", Min: 1, Max: 10_000, Help: "new namespaces that take the objects in turn"},
		{Name: "rate", Type: param.Float, Default: "0", Min: 0, Max: 10_000, Help: "objects a second, on a fixed schedule (open loop); 0: each worker creates the next one when the last one is created (closed loop)"},
		{Name: "workers", Type: param.Int, Default: "8", Min: 1, Max: maxWorkers, Help: "requests at the same time, at most"},
		{Name: "churn", Type: param.Float, Default: "0", Min: 0, Max: 100, Help: "percent of the objects that each step deletes and creates again, when its pods run"},
		{Name: "nodes", Type: param.Enum, Default: Untainted, Words: []string{Untainted, Simulated, Any}, Help: "where pods run: nodes without taints; simulated ones (kwok, label type=simulated); or both"},
		{Name: "class", Type: param.String, Default: "", Help: "RuntimeClass of the pods; without it, the cluster's default runtime"},
		{Name: "qps", Type: param.Float, Default: "0", Min: 0, Max: 100_000, Help: "the client's own limit of requests a second, as other clients have it; 0: none"},
		{Name: "timeout", Type: param.Duration, Default: "2m", Min: 1, Max: 3600, Help: "how long a step may take to create its objects and, again, to have its pods run; afterwards the load ends"},
	}
}

func (objects) Responses(v param.Values) []record.Response {
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Help: "objects a second while objects are created, of all steps"}
	if v.Float("rate") > 0 {
		rate.Better = record.Neither
	}
	latency := record.Response{Name: "api_latency_p99", Unit: record.Second, Better: record.Lower,
		Help: "99th percentile of the time of a request that changes an object, from when it was due to its answer"}
	if !HasPods(v.Str("object")) {
		return []record.Response{latency, rate}
	}
	return []record.Response{
		{Name: "pod_start_p50", Unit: record.Second, Better: record.Lower, Help: "median time from when a pod's object was due to when the watch said that the pod runs"},
		{Name: "pod_start_p99", Unit: record.Second, Better: record.Lower, Help: "99th percentile of that"},
		latency, rate,
	}
}

// roleLoad is the name of the only role.
const roleLoad = "load"

// Slack of the whole trial: creating and deleting namespaces, and their pods with them.
const (
	perObject = 100 * time.Millisecond // a guess, for the plan
	removing  = 10 * time.Minute
)

func (objects) Roles(v param.Values) ([]workload.Role, error) {
	count, steps, kind := v.Int("count"), v.Int("steps"), v.Str("object")
	switch {
	case steps > count:
		return nil, fmt.Errorf("steps %d, count %d: each step needs an object; write fewer steps", steps, count)
	case v.Int("namespaces") > count:
		return nil, fmt.Errorf("namespaces %d, count %d: each namespace needs an object; write fewer namespaces", v.Int("namespaces"), count)
	case v.Str("class") != "" && !HasPods(kind):
		return nil, fmt.Errorf("class %s: objects of the kind %s have no pods; leave class out", v.Str("class"), kind)
	case v.Str("nodes") != Untainted && !HasPods(kind):
		return nil, fmt.Errorf("nodes %s: objects of the kind %s have no pods; leave nodes out", v.Str("nodes"), kind)
	case v.Str("nodes") == Simulated && v.Str("class") != "":
		return nil, errors.New("class and nodes: nothing runs on a simulated node, so a RuntimeClass changes nothing; leave class out")
	}
	args := arguments((objects{}).Params(), v)
	expect := time.Duration(count) * perObject
	if r := v.Float("rate"); r > 0 {
		expect = max(expect, time.Duration(float64(count)/r*float64(time.Second)))
	}
	return []workload.Role{{
		Name: roleLoad, Mode: workload.Exec, Args: args, API: true, Until: measuredLine, Expect: expect,
		Within: expect + 2*time.Duration(steps)*v.Duration("timeout")*2 + removing,
	}}, nil
}

// arguments is the command line of the load generator: each parameter is a flag.
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
