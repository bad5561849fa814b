package httpload

import (
	"errors"
	"fmt"
	"strconv"

	"tare/param"
	"tare/volume"
	"tare/workload"
	"tare/workload/servers"
)

const (
	port = servers.HTTPPort
	file = "file.txt"
)

// Roles returns the server in the background and a client.
func (w Workload) Roles(v param.Values) ([]workload.Role, error) {
	if err := w.check(v); err != nil {
		return nil, fmt.Errorf("workload %s: %w", w.Name(), err)
	}
	return []workload.Role{w.serverRole(v), w.clientRole(v)}, nil
}

// check refuses parameters that cannot be run, or would measure something else.
func (w Workload) check(v param.Values) error {
	n, threads := v.Int("connections"), v.Int("threads")
	switch {
	case v.Str("load") == "open" && v.Float("rate") <= 0:
		return errors.New("load open needs a rate; write rate: 100 or another number of requests a second")
	case v.Str("load") == "open" && v.Float("rate")*v.Duration("duration").Seconds() < 1:
		return fmt.Errorf("rate %s sends no request within the duration %s; raise one of them", v.Str("rate"), v.Str("duration"))
	case v.Str("load") == "closed" && v.Float("rate") > 0:
		return errors.New("rate is for load open; leave rate at 0, or write load: open")
	case v.Str("load") == "closed" && n%threads != 0:
		// wrk gives each thread connections/threads of them, and drops the rest.
		return fmt.Errorf("connections %d cannot be shared evenly by threads %d; wrk would leave %d of them out", n, threads, n%threads)
	case v.Str("mpm") == "prefork" && v.Int("workers") < n:
		return fmt.Errorf("mpm prefork serves one connection a process, so workers %d leave %d of the connections %d without an answer; raise workers",
			v.Int("workers"), n-v.Int("workers"), n)
	case v.Str("mpm") == "event" && v.Int("server-threads") <= n:
		// A worker whose threads are all busy closes its kept connections, even while a request
		// comes over one, and the number of connections of each worker is not known.
		return fmt.Errorf("server-threads %d must be more than connections %d: mpm event closes connections when all threads of a worker are busy; raise server-threads",
			v.Int("server-threads"), n)
	}
	return nil
}

// path returns the requested path.
func (w Workload) path(v param.Values) string {
	if w.server.renders() {
		return "/"
	}
	return "/" + v.Str("files") + "/" + file
}

// Length of the page that both services render: the parts of page.ejs and page.erb around all
// texts, and around each text.
const (
	pageFrame = len("<!DOCTYPE html>\n<html>\n<body>\n") + len("</body>\n</html>\n")
	pageText  = len("    <p>") + 1024 + len("</p>\n")
)

// body returns the length of every answer's body.
func (w Workload) body(v param.Values) int64 {
	if w.server.renders() {
		return int64(pageFrame + v.Int("texts")*pageText)
	}
	return v.Size("size")
}

func (w Workload) serverRole(v param.Values) workload.Role {
	r := workload.Role{
		Name: "server", Mode: workload.Exec, Background: true, Image: string(w.server),
		Probe: &workload.Probe{Port: port, Path: w.path(v), Size: w.body(v)},
	}
	switch w.server {
	case node:
		r.Args = servers.Node(port, v.Str("workers"), v.Str("texts")).Args
	case ruby:
		r.Args = servers.Ruby(port, v.Str("workers"), v.Str("texts"), v.Str("server-threads")).Args
	case httpd:
		r.Args = apache(v)
	case nginx:
		r.Args = []string{"/usr/sbin/nginx", "-c", "/app/nginx.conf", "-g", "worker_processes " + v.Str("workers") + ";"}
	}
	if !w.server.renders() {
		dir := "/tmp/html"
		var shared []string
		if v.Str("files") == "disk" {
			r.Volumes = volume.AtData(volume.Disk)
			dir, shared = "/data/html", []string{"--open", "/data"} // which is root's alone
		}
		r.Before = append([]string{"/tare", "internal", "http", "file", "--path", dir + "/" + file}, shared...)
		r.Before = append(r.Before, "--size", strconv.FormatInt(v.Size("size"), 10))
	}
	return r
}

// apache fixes the number of processes, so that none start or end during the measurement.
func apache(v param.Values) []string {
	set := func(name string, n int) []string { return []string{"-c", name + " " + strconv.Itoa(n)} }
	workers, threads := v.Int("workers"), v.Int("server-threads")
	args := []string{"/usr/sbin/apache2", "-f", "/app/httpd.conf", "-D", "FOREGROUND", "-D", v.Str("mpm")}
	if v.Str("mpm") == "prefork" {
		threads = 1
		args = append(args, set("MinSpareServers", workers)...)
		args = append(args, set("MaxSpareServers", workers+1)...)
	} else {
		args = append(args, set("ThreadLimit", threads)...)
		args = append(args, set("ThreadsPerChild", threads)...)
		args = append(args, set("MinSpareThreads", 1)...)
		args = append(args, set("MaxSpareThreads", workers*threads+1)...)
	}
	args = append(args, set("ServerLimit", workers)...)
	args = append(args, set("StartServers", workers)...)
	return append(args, set("MaxRequestWorkers", workers*threads)...)
}

func (w Workload) clientRole(v param.Values) workload.Role {
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	warmup, duration := v.Duration("warmup"), v.Duration("duration")
	args := []string{"/tare", "internal", "http", v.Str("load"),
		"--url", "http://{server}:" + strconv.Itoa(port) + w.path(v), "--size", num(w.body(v)),
		"--connections", v.Str("connections"), "--warmup", warmup.String(), "--duration", duration.String(),
		"--timeout", v.Duration("timeout").String()}
	r := workload.Role{Name: "client", Mode: workload.Exec, Warmup: warmup, Expect: duration}
	if v.Str("load") == "open" {
		r.Args = append(args, "--rate", strconv.FormatFloat(v.Float("rate"), 'f', -1, 64))
		return r
	}
	r.Image = WrkImage
	r.Args = append(args, "--threads", v.Str("threads"), "--check", v.Str("check"))
	r.Expect += WrkEnd
	return r
}
