// Package servers describes the servers that more than one workload runs, so that each is the
// same program of the same image in all of them.
//
// The data path: 1. a workload's Roles gets a Server, by its name in a study or with more
// arguments; 2. it copies the fields into its role, and adapts the Probe.
package servers

import (
	"strconv"

	"tare/workload"
)

// Default ports of the servers. Each has its own network, so they are never in use.
const (
	HTTPPort  = 8080
	RedisPort = 6379
)

// Server is a program that answers over the network.
type Server struct {
	Image string         // its root file system
	Args  []string       // its command
	Probe workload.Probe // checks that it answers
}

// Find returns the server of a name in a study, on its default port: node, ruby or redis.
func Find(program string) (Server, bool) {
	switch program {
	case "node":
		return Node(HTTPPort), true
	case "ruby":
		return Ruby(HTTPPort), true
	case "redis":
		return Redis(RedisPort), true
	}
	return Server{}, false
}

// Node renders pages in JavaScript; more are the further arguments of
// images/node/server.js.
func Node(port int, more ...string) Server {
	return pages("node", port, more, "/usr/bin/node", "/app/server.js")
}

// Ruby renders the same pages; more are the further arguments of
// images/ruby/server.rb.
func Ruby(port int, more ...string) Server {
	return pages("ruby", port, more, "/usr/bin/ruby", "/app/server.rb")
}

func pages(image string, port int, more []string, command ...string) Server {
	return Server{
		Image: image, Args: append(append(command, strconv.Itoa(port)), more...),
		Probe: workload.Probe{Port: port, Path: "/"},
	}
}

// Redis is an empty redis-server; more are further options. It never saves to disk, which other
// workloads measure. It listens on all addresses, which are those of the study's network
// namespace.
func Redis(port int, more ...string) Server {
	return Server{
		Image: "redis",
		Args: append([]string{
			"/usr/bin/redis-server", "--port", strconv.Itoa(port), "--bind", "0.0.0.0", "--protected-mode", "no",
			"--save", "", "--appendonly", "no", "--dir", "/tmp",
		}, more...),
		Probe: workload.Probe{Port: port, Send: "PING\r\n", Want: "+PONG"},
	}
}
