// Package objects is the load generator of the workload objects, `tare internal objects`: it creates objects on the API
// server of the cluster in whose pod it runs.
//
// The data path: 1. Main reads the flags, and the study's id and image from the environment (cluster/pod); 2. the load
// (load.go) creates namespaces, then the objects of one step after another, by workers with an HTTP client that has no
// limit and tries nothing twice (api.go), in the form of manifest.go; 3. a watch says when their pods run (watch.go), or the guests of virtual machines (guests.go), and
// the load reads the metrics of the API server (metrics.go), of the kubelets (kubelets.go) and of the rest of the control plane (control.go) at each step. It can build and push an image for each object first (built.go). Claims have their own steps (claims.go).
// There, watches of claims, pods, volumes and attachments follow each claim (volumes.go, stream.go), and a program in its pod
// writes to it (writer.go); 4. the load prints each step as a line of JSON (workload/objects); 5. it deletes the namespaces,
// whatever happened.
package objects

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/workload/inside"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

// options are the flags.
type options struct {
	kind       string
	count      int
	steps      int
	namespaces int
	rate       string
	workers    int
	churn      float64
	nodes      string
	class      string
	qps        float64
	pause      time.Duration
	timeout    time.Duration
	// For loads on claims.
	parallel int
	consumer string
	storage  string // the StorageClass; "": the default one
	size     int64
	mode     string

	// For loads from a file.
	file, vars string
	containers string

	// For pods of images that the load builds.
	build     string // repository; "": tare's image
	buildSize int64  // of the files of an image, in bytes

	study, image string
	owner, space string
	node         string // that the load runs on
}

// Main is the program. It returns the exit code: 0, 1 for a failed run, 2 for wrong arguments.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return inside.Exit(stderr, "objects", run(ctx, args, stdout, stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{study: os.Getenv(pod.EnvStudy), image: os.Getenv(pod.EnvImage), owner: os.Getenv(pod.EnvNamespace), space: os.Getenv(pod.EnvSpace), node: os.Getenv(pod.EnvNode)}
	begun := time.Now()
	fs := flag.NewFlagSet("tare internal objects", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.kind, "object", objects.Pod, "pod, deployment, configmap, secret, service, vm or claim")
	fs.IntVar(&o.count, "count", 60, "objects after the last step")
	fs.IntVar(&o.steps, "steps", 3, "steps")
	fs.IntVar(&o.namespaces, "namespaces", 1, "namespaces")
	fs.StringVar(&o.rate, "rate", "0", "objects a second; 0: a closed loop")
	fs.IntVar(&o.workers, "workers", 8, "requests at once")
	fs.Float64Var(&o.churn, "churn", 0, "percent that is deleted and created again")
	fs.StringVar(&o.nodes, "nodes", objects.Untainted, "untainted, simulated, any or own")
	fs.StringVar(&o.class, "class", "", "RuntimeClass of pods")
	fs.Float64Var(&o.qps, "qps", 0, "requests a second, at most; 0: no limit")
	fs.DurationVar(&o.pause, "pause", 0, "wait after each step")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Minute, "of a step")
	fs.IntVar(&o.parallel, "parallel", 0, "claims in progress at once; 0: all claims of a step")
	fs.StringVar(&o.consumer, "consumer", objects.ConsumerPod, "user of each claim: pod or none")
	fs.StringVar(&o.storage, "storage", "", "StorageClass of claims; without it, the default one")
	fs.Int64Var(&o.size, "size", 1<<30, "size of each claim, in bytes")
	fs.StringVar(&o.mode, "mode", objects.Filesystem, "volume mode of claims: filesystem or block")
	fs.StringVar(&o.file, loadfile.Param, "", "text of another loader's file, with the files that it names")
	fs.StringVar(&o.vars, "vars", "", "values of the file's variables")
	fs.StringVar(&o.containers, "containers", objects.AsWritten, "program of a file's pods: as in the file (file), or pause")
	fs.StringVar(&o.build, objects.Build, "", "`HOST/REPOSITORY` of images that the load builds, one for each object; without it, tare's image")
	fs.Int64Var(&o.buildSize, objects.BuildSize, 1<<20, "size of the files of such an image, in bytes")
	kubeconfig := fs.String("kubeconfig", "", "a `file`, outside of a pod")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	if o.count < 1 || o.steps < 1 || o.steps > o.count || o.namespaces < 1 || o.workers < 1 || o.parallel < 0 || o.timeout <= 0 || o.pause < 0 {
		return fmt.Errorf("%w: --count, --steps, --namespaces, --workers and --timeout must be over 0, --pause not below 0, and no more --steps than --count", inside.ErrUsage)
	}
	if o.study == "" || o.image == "" {
		return fmt.Errorf("%w: %s or %s is not set: tare sets them in the pod of a study", inside.ErrUsage, pod.EnvStudy, pod.EnvImage)
	}
	var client *kube.Client
	var err error
	if *kubeconfig != "" {
		client, err = kube.FromKubeconfig(kube.Where{Kubeconfig: *kubeconfig})
	} else {
		client, err = kube.Inside(o.space, 0)
	}
	if err != nil {
		return err
	}
	api, err := newAPI(client, o.qps)
	if err != nil {
		return err
	}
	l, err := newLoad(o, api, func(l objects.Line) error { return inside.Print(stdout, l) })
	if err != nil {
		return err
	}
	if o.nodes != objects.Own {
		return l.run(ctx)
	}
	if l.node, err = openNode(ctx, api, o.node, begun); err != nil {
		return err
	}
	return errors.Join(l.run(ctx), l.node.close())
}
