package objects

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
)

// NewClaims returns the workload claims.
func NewClaims() workload.Workload { return claims{} }

type claims struct{}

// Who uses a claim.
const (
	ConsumerPod  = "pod"
	ConsumerNone = "none"
)

// Modes of volumes.
const (
	Filesystem = "filesystem"
	Block      = "block"
)

func (claims) Name() string { return "claims" }

func (claims) About() string {
	return "creates and deletes volume claims on a cluster in steps: until bound, mounted, written, gone"
}

// className is what the API server takes as the name of an object; "" is the cluster's default class.
var className = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$`)

func (claims) Params() []param.Param {
	name := func(text string) error {
		if !className.MatchString(text) {
			return fmt.Errorf("%q is not the name of a class; write one that `kubectl get storageclass,runtimeclass` lists", text)
		}
		return nil
	}
	return []param.Param{
		{Name: "count", Type: param.Int, Default: "30", Min: 1, Max: 100_000, Help: "claims of the last step; each step deletes its claims before the next one begins"},
		{Name: "steps", Type: param.Int, Default: "3", Min: 1, Max: maxSteps, Help: "steps in which the number of claims grows to the count"},
		{Name: "parallel", Type: param.Int, Default: "0", Min: 0, Max: maxWorkers, Help: "claims on their way at the same time: the next one is submitted when one can be used, and deleted when one is gone; 1: one after another; 0: all of the step"},
		{Name: "rate", Type: param.Float, Default: "0", Min: 0, Max: 10_000, Help: "claims a second, on a fixed schedule (open loop); 0: as fast as parallel and workers allow"},
		{Name: "consumer", Type: param.Enum, Default: ConsumerPod, Words: []string{ConsumerPod, ConsumerNone}, Help: "pod: each claim has a pod, which writes to it; none: claims alone, for a StorageClass that binds at once (volumeBindingMode Immediate)"},
		{Name: "storage", Type: param.String, Default: "", Valid: name, Help: "StorageClass of the claims; without it, the cluster's default"},
		{Name: "size", Type: param.Size, Default: "1GiB", Min: 1 << 20, Max: 1 << 50, Help: "of each claim"},
		{Name: "mode", Type: param.Enum, Default: Filesystem, Words: []string{Filesystem, Block}, Help: "volumeMode: a file system, or a block device"},
		{Name: "class", Type: param.String, Default: "", Valid: name, Help: "RuntimeClass of the pods; without it, the cluster's default runtime"},
		{Name: "namespaces", Type: param.Int, Default: "1", Min: 1, Max: 10_000, Help: "new namespaces that take the claims in turn"},
		{Name: "workers", Type: param.Int, Default: "8", Min: 1, Max: maxWorkers, Help: "requests at the same time, at most, while parallel is 0"},
		{Name: "qps", Type: param.Float, Default: "0", Min: 0, Max: 100_000, Help: "the client's own limit of requests a second, as other clients have it; 0: none"},
		{Name: "timeout", Type: param.Duration, Default: "5m", Min: 1, Max: 3600, Help: "how long a step may take to create its claims and, again, to have them usable, to delete them, and to have them gone; afterwards the load ends"},
	}
}

func (claims) Responses(v param.Values) []record.Response {
	time := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
	}
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Help: "claims bound a second, from the first submission of a step until its last claim is bound"}
	if v.Float("rate") > 0 {
		rate.Better = record.Neither
	}
	removal := rate
	removal.Name, removal.Help = "removal_rate", "claims removed a second, from the first deletion of a step until its last claim, volume and pod are gone"
	out := []record.Response{
		time("bound_p50", "median time from when a claim was due to when the watch said that it is bound"),
		time("bound_p95", "95th percentile of that"),
	}
	if v.Str("consumer") != ConsumerNone {
		out = append(out,
			time("mounted_p50", "median time from when a claim was due to when the program in its pod began"),
			time("mounted_p95", "95th percentile of that"),
			time("written_p50", "median time from when a claim was due to when its first byte was on the volume"),
			time("written_p95", "95th percentile of that"))
	}
	return append(out,
		time("claim_gone_p50", "median time from when a claim's deletion was due to when it was gone"),
		time("claim_gone_p95", "95th percentile of that"),
		time("volume_gone_p50", "median time from when a claim's deletion was due to when its volume was gone"),
		time("volume_gone_p95", "95th percentile of that"),
		rate, removal,
		time("api_latency_p99", "99th percentile of the time of a request that changes an object, from when it was due to its answer"))
}

// Guesses, for the plan.
const (
	perClaim = 500 * time.Millisecond // in parallel
	oneClaim = 8 * time.Second        // from its submission until it is gone
)

func (claims) Roles(v param.Values) ([]workload.Role, error) {
	count, steps, parallel, alone := v.Int("count"), v.Int("steps"), v.Int("parallel"), v.Str("consumer") == ConsumerNone
	switch {
	case steps > count:
		return nil, fmt.Errorf("steps %d, count %d: each step needs a claim; write fewer steps", steps, count)
	case v.Int("namespaces") > count:
		return nil, fmt.Errorf("namespaces %d, count %d: each namespace needs a claim; write fewer namespaces", v.Int("namespaces"), count)
	case parallel > 0 && v.Float("rate") > 0:
		return nil, errors.New("parallel and rate: on a schedule, claims do not wait for each other; leave one of both out")
	case alone && v.Str("class") != "":
		return nil, fmt.Errorf("class %s, consumer none: claims alone have no pods; leave class out", v.Str("class"))
	}
	all := count * (steps + 1) / 2
	expect := time.Duration(all) * perClaim
	if parallel > 0 {
		expect = max(expect, time.Duration(all)*oneClaim/time.Duration(parallel))
	}
	if r := v.Float("rate"); r > 0 {
		expect = max(expect, time.Duration(2*float64(all)/r*float64(time.Second)))
	}
	return []workload.Role{{
		Name: roleLoad, Mode: workload.Exec, Args: arguments((claims{}).Params(), v, "--object", Claim), API: true, Until: measuredLine, Expect: expect,
		Within: expect + 4*time.Duration(steps)*v.Duration("timeout") + removing,
	}}, nil
}

// Parse reads the lines of the load generator.
func (claims) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	return parse(v, Claim, out)
}

// Workers is how many claims are on their way, or how many requests are sent, at the same time.
func Workers(workers, parallel int) int {
	if parallel > 0 {
		return parallel
	}
	return workers
}
