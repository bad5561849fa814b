// Package link is the collector of a sandbox's port on the study's bridge: bytes each way,
// bytes that wait in the port's queue, dropped packets, and the port's rate limit.
//
// The data path: 1. Open opens a routing socket in the bridge's namespace; 2. each Read asks
// for the links and the queueing disciplines of that namespace, in two messages, and takes
// those of the trial's ports; 3. what the port sends the sandbox receives, and vice versa.
//
// Sources: rtnetlink(7), IFLA_STATS64 of include/uapi/linux/if_link.h, and TCA_STATS2 of
// include/uapi/linux/rtnetlink.h; what `ip -s link` and `tc -s qdisc` print:
//
//	qdisc tbf 8001: dev tare-x root refcnt 2 rate 100Mbit burst 128Kb lat 50ms
//	 Sent 12398312 bytes 8231 pkt (dropped 12, overlimits 7432 requeues 0)
//	 backlog 61k 41p requeues 0
package link

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"

	"tare/collect"
	"tare/collect/internal/metered"
	"tare/host/network"
	"tare/internal/rootless"
	"tare/record"
	"tare/sandbox"
)

// Collector is the collector; it keeps no state.
type Collector struct{}

// New makes the collector.
func New() *Collector { return &Collector{} }

var _ collect.Collector = (*Collector)(nil)

// Name is the word in a study file.
func (*Collector) Name() string { return "link" }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "each sandbox's port on the study's bridge: bytes each way, queue, drops, rate (rtnetlink(7))"
}

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	return []record.Response{
		{Name: record.LinkReceived, Unit: record.Byte, Better: record.Neither, Help: "bytes towards the sandbox, by end"},
		{Name: record.LinkSent, Unit: record.Byte, Better: record.Neither, Help: "bytes from the sandbox, by end"},
		{Name: record.LinkBacklog, Unit: record.Byte, Better: record.Lower, Help: "bytes that wait in the queue of the port, towards the sandbox, by end"},
		{Name: record.LinkDrops, Unit: record.Count, Better: record.Lower, Help: "packets that were dropped at the port, both ways, by end"},
		{Name: record.LinkRate, Unit: record.BytesPerSecond, Better: record.Neither, Help: "rate limit of the port towards the sandbox, by end; only if the study sets it (link-rate)"},
		metered.Series(),
	}
}

// Check returns why this host cannot have ports.
func (*Collector) Check() error {
	if os.Geteuid() != 0 && rootless.Check() != nil {
		return errors.New("link collector: the bridge needs root; run tare with sudo, or leave the collector out of the study")
	}
	return nil
}

// Open finds the ports of the scopes. Without ports, as with a workload of one role, the
// probe reads nothing.
func (*Collector) Open(_ context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	p := &probe{}
	p.Reader = metered.New("link", p.take)
	where := ""
	for i := range scopes {
		if at, ok := network.PortOf(scopes[i].Network); ok {
			p.ports = append(p.ports, port{name: at.Link, labels: record.MakeLabels(record.LabelEndpoint, scopes[i].Endpoint)})
			where = at.Namespace
		}
	}
	if where == "" {
		return p, nil
	}
	err := network.Enter(where, func() (err error) {
		p.handle, err = netlink.NewHandle(unixRoute)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("link collector: %w", err)
	}
	return p, nil
}

type probe struct {
	metered.Reader
	handle *netlink.Handle // in the bridge's namespace; nil without ports
	ports  []port
}

// take sends two requests for any number of ports. A port that is gone keeps its last
// figures.
func (p *probe) take(dst []record.Sample) ([]record.Sample, error) {
	if p.handle != nil {
		if err := p.ask(); err != nil {
			return dst, fmt.Errorf("link collector: %w", err)
		}
	}
	for i := range p.ports {
		dst = p.ports[i].samples(dst)
	}
	return dst, nil
}

func (p *probe) ask() error {
	links, err := p.handle.LinkList()
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil // a port was added or removed meanwhile: the next reading has it
	}
	if err != nil {
		return fmt.Errorf("links: %w", err)
	}
	queues, err := p.handle.QdiscList(nil)
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("queueing disciplines: %w", err)
	}
	for i := range p.ports {
		for _, l := range links {
			if l.Attrs().Name == p.ports[i].name {
				p.ports[i].take(l.Attrs(), queues)
			}
		}
	}
	return nil
}

// Close releases the socket. It is idempotent.
func (p *probe) Close() error {
	if p.Reader.Close() && p.handle != nil {
		p.handle.Close()
	}
	return nil
}
