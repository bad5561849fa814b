package proc

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/record"
)

// queues are the ports on which the processes of an end that is not the trial's listen: how many connections the kernel has taken that
// the program has not accepted yet. A server that serves as many as it may, such as HAProxy at its maxconn, leaves them there.
//
// Source: proc(5), /proc/PID/net/tcp. Its first lines are of sockets that listen, and there rx_queue is the length of the accept queue
// (tcp_get_info and get_tcp4_sock of net/ipv4).
type queues struct {
	labels record.Labels
	groups []string        // of the end
	found  time.Duration   // when the sockets were last looked for
	in     map[string]int  // a process of each network namespace that they are in
	own    map[string]bool // inodes of the end's sockets
}

// Bounds of a look for sockets: ports are opened when a program starts, so their descriptors have low numbers.
const (
	mostDescriptors = 256
	mostListening   = 1 << 16 // bytes
)

func (p *probe) openQueues() {
	by := map[record.Labels]*queues{}
	for i := range p.scopes {
		s := &p.scopes[i]
		if !s.Outside || s.Endpoint == "" {
			continue
		}
		l := record.MakeLabels(record.LabelEndpoint, s.Endpoint)
		if by[l] == nil {
			by[l] = &queues{labels: l}
			p.queues = append(p.queues, by[l])
		}
		by[l].groups = append(by[l].groups, s.Cgroups...)
	}
}

// appendQueues appends the connections that wait, of each end that has a port.
func (p *probe) appendQueues(dst []record.Sample) []record.Sample {
	for _, q := range p.queues {
		if now := p.o.Now(); q.own == nil || now-q.found >= p.o.Rescan {
			q.found = now
			q.find(p)
		}
		waiting, any := 0, false
		for _, pid := range q.in {
			for _, table := range []string{"tcp", "tcp6"} {
				n, some := q.read(filepath.Join(p.path(pid), "net", table))
				waiting, any = waiting+n, any || some
			}
		}
		if any {
			dst = append(dst, record.Sample{Name: record.QueuedConnections, Labels: q.labels, Unit: record.Count, Kind: record.Gauge, Value: float64(waiting)})
		}
	}
	return dst
}

// find looks for the sockets of the end's processes.
func (q *queues) find(p *probe) {
	q.in, q.own = map[string]int{}, map[string]bool{}
	for _, group := range q.groups {
		pids, _ := p.o.Members(group) // of a pod that is gone: none
		for _, pid := range pids {
			dir := p.path(pid)
			net, err := os.Readlink(filepath.Join(dir, "ns", "net"))
			if err != nil {
				continue // it has ended
			}
			q.in[net] = pid
			for fd := range mostDescriptors {
				at, err := os.Readlink(filepath.Join(dir, "fd", strconv.Itoa(fd)))
				if inode, is := strings.CutPrefix(at, "socket:["); err == nil && is {
					q.own[strings.TrimSuffix(inode, "]")] = true
				}
			}
		}
	}
}

// read sums the accept queues of the end's sockets in a table; some says that there are such sockets.
func (q *queues) read(table string) (waiting int, some bool) {
	f, err := os.Open(table) //nolint:gosec // in /proc
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(bufio.NewReaderSize(f, 4096))
	lines.Scan() // the heading
	for read := 0; lines.Scan() && read < mostListening; read += len(lines.Bytes()) {
		n, inode, listens := listening(lines.Text())
		if !listens {
			break // all others follow
		}
		if q.own[inode] {
			waiting, some = waiting+n, true
		}
	}
	return waiting, some
}

// listening reads a line of /proc/net/tcp; false if its socket does not listen.
func listening(line string) (waiting int, inode string, _ bool) {
	const listen = "0A" // TCP_LISTEN of include/net/tcp_states.h
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != listen {
		return 0, "", false
	}
	_, rx, _ := strings.Cut(f[4], ":")
	n, err := strconv.ParseUint(rx, 16, 32)
	return int(n), f[9], err == nil
}
