// Package registry is the workload registry: images are pushed to a container registry, or pulled
// from it, by many clients at once, or built, pushed and rolled out on a schedule.
//
// The data path: 1. Roles starts the registry as one end and `/tare internal registry push` or `pull`
// as the other; 2. for pulls, `/tare internal registry fill` (fill.go) has put the images into the registry's storage
// before; 3. each client (load.go) makes one image after another with go-containerregistry, as crane and many
// tools do, and checks every digest that it pulls; a pipeline (pipeline.go) builds images from files (app); 4. the client prints one line of JSON, which Parse reads (parse.go).
//
// Reference: the OCI distribution specification,
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md.
package registry

import (
	"fmt"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
)

// New returns the workload.
func New() workload.Workload { return registry{} }

type registry struct{}

// Words of parameters.
const (
	push              = "push"
	pull              = "pull"
	operationPipeline = "pipeline"

	distribution = "distribution"
	own          = "tare"

	warm    = "warm"
	dropped = "dropped"
)

const (
	// port is the registry's. Each has its own network.
	port = 5000
	// storage is where the registry keeps blobs: the disk to be measured.
	storage = "/data/registry"
	// most bounds what all images hold, in bytes.
	most = int64(64) << 30
	// held bounds the images that clients have in memory, in bytes.
	held = int64(4) << 30
	// work is where a pipeline has its files, on the client's own volume.
	work = "/data/pipeline"
	// longest bounds a latency.
	longest = time.Hour
	// slow is the lowest expected throughput, in bytes a second, to guess times.
	slow = 20 << 20
)

func (registry) Name() string { return "registry" }

func (registry) About() string {
	return "a container registry under clients that push or pull images: large requests over the network, digests, and files on the disk"
}

func (registry) Params() []param.Param {
	return []param.Param{
		{Name: "program", Type: param.Enum, Default: distribution, Words: []string{distribution, own}, Help: "distribution: the registry of the CNCF (docker-registry); tare: the registry of go-containerregistry, in tare itself"},
		{Name: "operation", Type: param.Enum, Default: pull, Words: []string{push, pull, operationPipeline}, Help: "what the clients do; pipeline: build an image, push it, pull and unpack it, and start its program"},
		{Name: "rate", Type: param.String, Offered: true, Default: "2", Valid: func(text string) error { _, err := parseRate(text); return err }, Help: "of a pipeline: images a second, on a fixed schedule (open loop)"},
		{Name: "clients", Type: param.Int, Default: "4", Min: 1, Max: 256, Help: "at once, each with one image at a time; of a pipeline, at most"},
		{Name: "layers", Type: param.Int, Default: "2", Min: 1, Max: 64, Help: "of an image, transferred at once"},
		{Name: "layer-size", Type: param.Size, Default: "4MiB", Min: 1 << 10, Max: 1 << 30, Help: "of a layer; the content is random, and not compressed; of a pipeline: of its files, which gzip can halve"},
		{Name: "images", Type: param.Int, Default: "8", Min: 1, Max: 10000, Help: "different images to pull"},
		{Name: "cache", Type: param.Enum, Default: warm, Words: []string{warm, dropped}, Help: "of pulls. warm: the clients pull the images again and again; dropped: the page cache is dropped, and each image pulled once"},
		{Name: "duration", Type: param.Duration, Default: "3s", Min: 0.05, Max: 3600, Help: "measured time; with cache dropped, as long as the images take"},
		{Name: "warmup", Type: param.Duration, Default: "500ms", Min: 0, Max: 600, Help: "load before the measured time; none with cache dropped"},
	}
}

func (registry) Responses(v param.Values) []record.Response {
	if v.Str("operation") == operationPipeline {
		time := func(name, help string) record.Response {
			return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
		}
		return []record.Response{
			time("latency_p50", "median time from when an image was due until its program ran"),
			time("latency_p99", "99th percentile of that"),
			time("built_p50", "median time to build an image: read the files, pack and compress them, compute the digests"),
			time("pushed_p50", "median time to push an image"),
			time("pulled_p50", "median time to pull and unpack an image"),
			time("started_p50", "median time from the start of an image's program until it says that it runs"),
			{Name: "rate", Unit: record.PerSecond, Better: record.Neither, Operation: "image", Help: "images that were rolled out in the measured time"},
		}
	}
	return []record.Response{
		{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Help: "bytes of layers, all clients together"},
		{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Operation: "image", Help: "whole images, all clients together"},
		{Name: "latency_p50", Unit: record.Second, Better: record.Lower, Help: "median time of an image"},
		{Name: "latency_p99", Unit: record.Second, Better: record.Lower, Help: "99th percentile of the time of an image"},
	}
}

// Roles returns the registry in the background, and a client.
func (registry) Roles(v param.Values) ([]workload.Role, error) {
	each := int64(v.Int("layers")) * v.Size("layer-size")
	all, pushers := int64(v.Int("images"))*each, int64(fillers)
	if v.Str("operation") != pull {
		pushers = int64(v.Int("clients"))
	}
	cold := v.Str("cache") == dropped
	switch {
	case v.Str("operation") != pull && cold:
		return nil, fmt.Errorf("cache = dropped has no effect with operation = %s, whose images were not there before; write cache: warm", v.Str("operation"))
	case v.Str("operation") != operationPipeline && v.Str("rate") != "2":
		return nil, fmt.Errorf("rate = %s has no effect with operation = %s, whose clients do not wait; leave rate out, or write operation: pipeline", v.Str("rate"), v.Str("operation"))
	case v.Str("operation") == pull && all > most:
		return nil, fmt.Errorf("images = %s with layers = %s and layer-size = %s take more than %s; make one of them smaller",
			v.Str("images"), v.Str("layers"), v.Str("layer-size"), param.FormatSize(most))
	case pushers*each > held:
		return nil, fmt.Errorf("layers = %s with layer-size = %s: %d clients push such images at once, and have more than %s in memory; make one of them smaller",
			v.Str("layers"), v.Str("layer-size"), pushers, param.FormatSize(held))
	case cold && v.Int("images") < v.Int("clients"):
		return nil, fmt.Errorf("clients = %s have less than an image each, because with cache = dropped each of images = %s is pulled once", v.Str("clients"), v.Str("images"))
	}
	server := workload.Role{
		Name: "server", Mode: workload.Exec, Background: true, Volumes: volume.AtData(volume.Disk),
		Args:  []string{"/tare", "internal", "registry", "serve", "--storage", storage},
		Probe: &workload.Probe{Port: port, Path: "/v2/"},
	}
	if v.Str("program") == distribution {
		server.Image, server.Args = "registry", []string{"/usr/bin/docker-registry", "serve", "/app/config.yml"}
	}
	images := []string{
		"--images", v.Str("images"), "--layers", v.Str("layers"), "--layer-size", strconv.FormatInt(v.Size("layer-size"), 10),
	}
	client := workload.Role{
		Name: "client", Mode: workload.Exec, Warmup: v.Duration("warmup"), Expect: v.Duration("duration"),
		Args: append([]string{
			"/tare", "internal", "registry", v.Str("operation"), "--at", "{server}:" + strconv.Itoa(port), "--clients", v.Str("clients"),
			"--warmup", v.Duration("warmup").String(), "--duration", v.Duration("duration").String(),
		}, images...),
	}
	if v.Str("operation") == operationPipeline {
		client.Volumes, client.Within = volume.AtData(volume.Disk), client.Warmup+client.Expect+drain(client.Expect)+time.Minute
		client.Args = append(client.Args, "--rate", v.Str("rate"), "--dir", work)
	}
	if v.Str("operation") == pull {
		server.Before = append(append([]string{"/tare", "internal", "registry", "fill"}, images...), append([]string{"--"}, server.Args...)...)
		server.BeforeWithin = time.Duration(all/slow) * time.Second
		server.DropCaches = cold
	}
	if cold {
		client.Warmup, client.Expect = 0, time.Duration(float64(all)/(10*slow)*float64(time.Second))
		client.Within = time.Duration(all/slow)*time.Second + time.Minute
		client.Args = append(client.Args, "--once")
	}
	return []workload.Role{server, client}, nil
}

// reference is where the image of a number is.
func reference(at string, n uint64) string { return at + "/tare/image:" + strconv.FormatUint(n, 10) }
