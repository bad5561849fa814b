package ingress

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/workload/child"
	"tare/workload/inside"
)

// Where the programs are in their images, and what they serve.
const (
	haproxyProgram = "/usr/sbin/haproxy"
	nginxProgram   = "/usr/sbin/nginx"
	file           = "file.txt"
)

// Main is `tare internal ingress`: it starts haproxy or nginx, by the first argument, with a
// configuration that it writes below the directory for temporary files. It returns the exit code:
// 1 if the program cannot be started or ends, 2 for wrong arguments.
func Main(args []string, stdout, stderr io.Writer) int {
	return inside.Main("ingress", args, stdout, stderr, command)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	what, args := inside.Verb(args)
	fs := inside.Flags("tare internal ingress "+what, stderr)
	switch what {
	case "haproxy":
		return haproxy(ctx, fs, args, stdout, stderr)
	case "nginx":
		return nginx(fs, args)
	}
	return fmt.Errorf("%w: write haproxy or nginx first", inside.ErrUsage)
}

// folder makes a folder with a certificate for a program's configuration. It goes with the sandbox.
func folder() (string, error) {
	dir, err := os.MkdirTemp("", "ingress-")
	if err != nil {
		return "", fmt.Errorf("cannot write the configuration: %w", err)
	}
	pem, err := certificate()
	if err != nil {
		return "", err
	}
	return dir, write(dir, "site.pem", pem)
}

// nginx becomes nginx.
func nginx(fs *flag.FlagSet, args []string) error {
	workers := fs.Int("workers", 1, "processes")
	program := fs.String("program", nginxProgram, "path of nginx")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	dir, err := folder()
	if err != nil {
		return err
	}
	if err := fill(dir, "nginx.conf", nginxText, behind{dir, *workers, plainPort, securePort}); err != nil {
		return err
	}
	return become(*program, "-c", filepath.Join(dir, "nginx.conf"))
}

// become replaces this process by a program, so that nothing stands between it and its sandbox.
func become(program string, args ...string) error {
	if err := syscall.Exec(program, append([]string{program}, args...), os.Environ()); err != nil { //nolint:gosec // a program of the image
		return fmt.Errorf("cannot start %s: %w", program, err)
	}
	return nil
}

// haproxy becomes HAProxy, or starts several processes of it, which it outlives.
func haproxy(ctx context.Context, fs *flag.FlagSet, args []string, stdout, stderr io.Writer) error {
	server := fs.String("backend", "", "`address` of the server behind")
	termination := fs.String("termination", plain, "where TLS ends")
	routes := fs.Int("routes", 1, "routes")
	threads := fs.Int("threads", 1, "threads of each process")
	processes := fs.Int("processes", 1, "processes, which share a port")
	pin := fs.String("pin", "none", "processors, joined by +")
	most := fs.Int("maxconn", 2000, "connections of each process")
	program := fs.String("program", haproxyProgram, "path of haproxy")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	cpus, err := pins(*pin)
	if err != nil {
		return fmt.Errorf("%w: %w", inside.ErrUsage, err)
	}
	if err := present(cpus); err != nil {
		return err
	}
	dir, err := folder()
	if err != nil {
		return err
	}
	conf, err := newBetween(dir, *termination, *server, *routes)
	if err != nil {
		return fmt.Errorf("%w: %w", inside.ErrUsage, err)
	}
	conf.Threads, conf.MaxConn = *threads, *most
	if err := write(dir, "routes.map", conf.routesMap()); err != nil {
		return err
	}
	var files []string
	for i := range *processes {
		conf.CPUs = cpus
		if *processes > 1 && len(cpus) > 0 {
			conf.CPUs = cpus[i%len(cpus):][:1]
		}
		name := "haproxy-" + strconv.Itoa(i) + ".cfg"
		if err := fill(dir, name, haproxyText, conf); err != nil {
			return err
		}
		files = append(files, filepath.Join(dir, name))
	}
	if len(files) == 1 {
		return become(*program, "-f", files[0])
	}
	return together(ctx, *program, files, stdout, stderr)
}

// present refuses processors that this program cannot run on. HAProxy ignores them without a word.
func present(cpus []int) error {
	var has unix.CPUSet
	if err := unix.SchedGetaffinity(0, &has); err != nil {
		return fmt.Errorf("cannot read which processors there are: %w", err)
	}
	for _, n := range cpus {
		if !has.IsSet(n) {
			return fmt.Errorf("pin: HAProxy cannot run on processor %d here; write other processors, or none", n)
		}
	}
	return nil
}

// together runs a process of HAProxy for each configuration until the context ends, or one of them
// does.
func together(ctx context.Context, program string, files []string, stdout, stderr io.Writer) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(files))
	for _, f := range files {
		cmd := child.Command(running, program, "-f", f)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		go func() { ended <- child.Run(cmd, nil) }()
	}
	err := <-ended
	stop()
	for range len(files) - 1 {
		<-ended //nolint:errcheck // it was told to end
	}
	switch {
	case ctx.Err() != nil:
		return nil // it was told to end
	case err != nil:
		return fmt.Errorf("a process of haproxy ended: %w", err)
	}
	return errors.New("a process of haproxy ended")
}
