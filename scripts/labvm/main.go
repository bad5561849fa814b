// Command labvm tests tare on the kind of host that most users have: Debian with systemd and
// only version 2 control groups, as a virtual machine.
//
// The data path: 1. host/image builds the tree of recipe/machine from the
// distribution's packages, and mke2fs makes a disk of it, kept in .cache/labvm (disk.go);
// 2. a second disk gets the tare under test, runsc and test binaries (tools.go); 3. QEMU
// boots both, with KVM where that works (machine.go); 4. the agent of tare itself runs the
// commands of each step in the machine, over a virtio port (lab.go, steps.go); 5. a line
// for each step shows its result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what a user asked for.
type options struct {
	module  string   // the folder of go.mod
	only    []string // names of steps; nil: all
	brief   bool
	live    bool
	budget  string
	capture string
	script  string // run instead of the steps
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	f := flag.NewFlagSet("labvm", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.brief, "brief", false, "run only the steps of make test")
	f.BoolVar(&o.live, "v", false, "print what each step does while it runs")
	f.StringVar(&o.budget, "budget", "", "time of the first study, such as 1m (default: the study's own)")
	f.StringVar(&o.capture, "capture", "", "write the captured control group files into this folder")
	f.StringVar(&o.script, "sh", "", "run this script in the machine and print its output, instead of the steps")
	only := f.String("steps", "", "run only these steps: names, separated by commas")
	list := f.Bool("list", false, "print the steps")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if *list {
		for _, s := range allSteps() {
			fmt.Fprintln(stdout, s.name)
		}
		return 0
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	o.module = "."
	if err := o.run(ctx, stdout); err != nil {
		fmt.Fprintln(stderr, "labvm:", err)
		return 1
	}
	return 0
}

// run makes and boots the machine, and runs the steps.
func (o options) run(ctx context.Context, out io.Writer) (err error) {
	steps := allSteps()
	packages := fullTests()
	if o.script != "" {
		steps = []step{{"script", true, time.Hour, func(ctx context.Context, l *lab) error {
			_, err := l.sh(ctx, o.script)
			return err
		}}}
		o.live = true
	} else if o.brief {
		steps, packages = briefSteps(), briefTests()
	}
	if steps, err = choose(steps, o.only); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("making the machine's disk needs root; run with sudo")
	}
	begun := time.Now()
	lap := func(what string) {
		fmt.Fprintf(out, "ok      %6.1f s  %s\n", time.Since(begun).Seconds(), what)
		begun = time.Now()
	}
	cache := filepath.Join(o.module, ".cache", "labvm")
	d, err := makeDisk(ctx, cache, func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) })
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tare-labvm-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	tools := filepath.Join(work, "tools.img")
	if err := makeTools(ctx, o.module, work, tools, packages); err != nil {
		return err
	}
	lap("disks")
	start := func(ctx context.Context, line string) (*vm, error) { return boot(ctx, cache, d, tools, line) }
	m, err := start(ctx, "")
	if err != nil {
		return err
	}
	defer m.off()
	lap("boot, accelerator " + m.accel)
	l := &lab{vm: m, boot: start, full: !o.brief, budget: o.budget, capture: o.capture}
	return l.play(ctx, steps, out, o.live)
}
