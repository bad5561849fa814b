// Command lab runs a real Kubernetes cluster on this machine, for tests: a control plane,
// two nodes with runc and gVisor, and as many simulated nodes as are asked for.
//
// The data path: 1. the Go tool builds every program from the pinned modules in modules/
// into .cache/lab/KEY (modules.go); 2. up makes network namespaces, control groups,
// certificates and configuration (network.go, groups.go, pki.go, config.go); 3. each daemon
// starts by way of this program, which enters them, records itself and becomes the daemon
// (start.go, enter.go, node.go); 4. images and objects go into the cluster (images.go, up.go,
// ingress.go, kubevirt.go); 5. -check runs pods (check.go); 6. down removes it all, by the names that up gave
// (down.go).
package main

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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `usage: lab up [-simulated N] [-ingress] [-kubevirt] [-check] | down | status | load IMAGE.tar ... | -list
  up      build what is missing, and start the cluster
  down    remove the cluster and everything that it made
  status  print what runs
  load    import images, as tar files, into both nodes
  -list   print the programs and the versions of their modules
`

// command runs one verb and returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	err := verb(ctx, args[0], args[1:], stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprint(stderr, usage)
		return 2
	case !errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, "lab:", err)
	}
	return 1
}

// errUsage says that the command line is wrong.
var errUsage = errors.New("wrong usage")

func verb(ctx context.Context, name string, args []string, stdout, stderr io.Writer) error {
	switch name {
	case "-list", "--list":
		return list(ctx, stdout, moduleDir)
	case "enter":
		return enter(os.Stdin)
	case "forward":
		return forward(ctx, args)
	}
	f := flag.NewFlagSet("lab "+name, flag.ContinueOnError)
	f.SetOutput(stderr)
	var o options
	if name == "up" {
		f.IntVar(&o.simulated, "simulated", 0, "how many simulated nodes to add")
		f.BoolVar(&o.ingress, "ingress", false, "build and start an ingress controller too, HAProxy Ingress, with routes to load")
		f.BoolVar(&o.kubeVirt, "kubevirt", false, "build and start KubeVirt's virt-api and virt-controller too")
		f.BoolVar(&o.check, "check", false, "then run pods that check the cluster")
	}
	if err := f.Parse(args); err != nil {
		return errUsage
	}
	if name != "load" && f.NArg() > 0 {
		return errUsage
	}
	p, err := newPlaces(cacheDir)
	if err != nil {
		return err
	}
	l := &lab{places: p, out: stdout, begun: time.Now()}
	switch name {
	case "up":
		return l.up(ctx, o)
	case "down":
		return l.down(ctx)
	case "status":
		return l.status()
	case "load":
		return l.load(ctx, f.Args())
	}
	return errUsage
}

// options are those of up.
type options struct {
	simulated int  // nodes
	ingress   bool // a controller too
	kubeVirt  bool // its control plane too
	check     bool
}
