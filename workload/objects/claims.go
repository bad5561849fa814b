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
	return "creates and deletes volume claims on a cluster in steps, and times each stage until they are written to and gone"
}

// className matches the names of objects that the API server accepts; "" is the cluster's default class.
var className = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$`)

func (claims) Params() []param.Param {
	name := func(text string) error {
		if !className.MatchString(text) {
			return fmt.Errorf("%q is not a valid class name; write a name that `kubectl get storageclass,runtimeclass` lists", text)
		}
		return nil
	}
	return []param.Param{
		{Name: "count", Type: param.Int, Default: "30", Min: 1, Max: 100_000, Help: "claims of the last step; each step deletes its claims before the next one begins"},
		{Name: "steps", Type: param.Int, Default: "3", Min: 1, Max: maxSteps, Help: "number of steps; the number of claims grows to the count in equal steps"},
		{Name: "parallel", Type: param.Int, Default: "0", Min: 0, Max: maxWorkers, Help: "claims in progress at the same time: the load creates the next claim when one is usable, and deletes the next one when one is gone; 1: one after another; 0: all claims of the step"},
		{Name: "rate", Type: param.Float, Offered: true, Default: "0", Min: 0, Max: 10_000, Help: "claims a second, on a fixed schedule (open loop); 0: as fast as parallel and workers allow"},
		{Name: "consumer", Type: param.Enum, Default: ConsumerPod, Words: []string{ConsumerPod, ConsumerNone}, Help: "pod: each claim has a pod, which writes to it; none: claims without pods, for a StorageClass that binds immediately (volumeBindingMode Immediate)"},
		{Name: "storage", Type: param.String, Default: "", Valid: name, Help: "StorageClass of the claims; without it, the cluster's default"},
		{Name: "size", Type: param.Size, Default: "1GiB", Min: 1 << 20, Max: 1 << 50, Help: "size of each claim"},
		{Name: "mode", Type: param.Enum, Default: Filesystem, Words: []string{Filesystem, Block}, Help: "volumeMode: a file system, or a block device"},
		{Name: "class", Type: param.String, Default: "", Valid: name, Help: "RuntimeClass of the pods; without it, the cluster's default runtime"},
		{Name: "namespaces", Type: param.Int, Default: "1", Min: 1, Max: 10_000, Help: "number of new namespaces; the claims are spread over them in turn"},
		{Name: "workers", Type: param.Int, Default: "8", Min: 1, Max: maxWorkers, Help: "largest number of requests at the same time while parallel is 0"},
		{Name: "qps", Type: param.Float, Default: "0", Min: 0, Max: 100_000, Help: "the client's own limit in requests a second, as other clients have; 0: no limit"},
		{Name: "timeout", Type: param.Duration, Default: "5m", Min: 1, Max: 3600, Help: "time limit for each of four phases of a step: create the claims, wait until they are usable, delete them, wait until they are gone; the load ends when a phase takes longer"},
	}
}

func (claims) Responses(v param.Values) []record.Response {
	time := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
	}
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Help: "claims bound a second, from a step's first create request until its last claim is bound"}
	if v.Float("rate") > 0 {
		rate.Better = record.Neither
	}
	removal := rate
	removal.Name, removal.Help = "removal_rate", "claims removed a second, from a step's first delete request until its last claim, volume and pod are gone"
	out := []record.Response{
		time("bound_p50", "median time from when a claim was due until the watch reported it as bound"),
		time("bound_p95", "95th percentile of that"),
	}
	if v.Str("consumer") != ConsumerNone {
		out = append(out,
			time("mounted_p50", "median time from when a claim was due until the program in its pod began"),
			time("mounted_p95", "95th percentile of that"),
			time("written_p50", "median time from when a claim was due until its first byte was on the volume"),
			time("written_p95", "95th percentile of that"))
	}
	return append(out,
		time("claim_gone_p50", "median time from when a claim's deletion was due until the claim was gone"),
		time("claim_gone_p95", "95th percentile of that"),
		time("volume_gone_p50", "median time from when a claim's deletion was due until its volume was gone"),
		time("volume_gone_p95", "95th percentile of that"),
		rate, removal,
		time("api_latency_p99", "99th percentile of the time of a request that changes an object, from when it was due until its answer"))
}

// Estimates for the plan.
const (
	perClaim      = 500 * time.Millisecond // in parallel
	perClaimsStep = 5 * time.Second        // of claims with pods, in parallel
	oneClaim      = 8 * time.Second        // from its creation until it is gone
)

func (claims) Roles(v param.Values) ([]workload.Role, error) {
	count, steps, parallel, alone := v.Int("count"), v.Int("steps"), v.Int("parallel"), v.Str("consumer") == ConsumerNone
	switch {
	case steps > count:
		return nil, fmt.Errorf("steps %d, count %d: each step needs a claim; write fewer steps", steps, count)
	case v.Int("namespaces") > count:
		return nil, fmt.Errorf("namespaces %d, count %d: each namespace needs a claim; write fewer namespaces", v.Int("namespaces"), count)
	case parallel > 0 && v.Float("rate") > 0:
		return nil, errors.New("parallel and rate: claims on a schedule do not wait for each other; leave one of the two out")
	case alone && v.Str("class") != "":
		return nil, fmt.Errorf("class %s, consumer none: claims without pods have no RuntimeClass; leave class out", v.Str("class"))
	}
	all := count * (steps + 1) / 2
	expect := time.Duration(all) * perClaim
	if !alone {
		expect += time.Duration(steps) * perClaimsStep
	}
	if parallel > 0 {
		expect = max(expect, time.Duration(all)*oneClaim/time.Duration(parallel))
	}
	if r := v.Float("rate"); r > 0 {
		expect = max(expect, time.Duration(2*float64(all)/r*float64(time.Second)))
	}
	expect += namespacesGo
	return []workload.Role{{
		Name: roleLoad, Mode: workload.Exec, Args: arguments((claims{}).Params(), v, "--object", Claim), API: true, Claims: &workload.Claims{Class: v.Str("storage"), Immediate: alone}, Until: measuredLine, Expect: expect,
		Within: expect + 4*time.Duration(steps)*v.Duration("timeout") + removing,
	}}, nil
}

// Parse reads the lines of the load generator.
func (claims) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	return parse(v, Claim, out)
}

// Workers returns how many claims are in progress, or how many requests are sent, at the same time.
func Workers(workers, parallel int) int {
	if parallel > 0 {
		return parallel
	}
	return workers
}
