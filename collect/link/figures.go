package link

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/record"
)

const unixRoute = unix.NETLINK_ROUTE

// port is one sandbox's port, as last read.
type port struct {
	name   string // of the link
	labels record.Labels
	seen   bool

	received, sent, drops uint64
	backlog               uint64
	rate                  uint64 // bytes a second; 0: unknown
	dropped               uint64 // by the queue, of 32 bits, as last read
	queueDrops            uint64 // continued after overflows
	handle                uint32 // of that queue
}

// take reads the port's own counters and those of its root queue: what the port sends is
// what the sandbox receives.
func (p *port) take(a *netlink.LinkAttrs, queues []netlink.Qdisc) {
	if a.Statistics == nil {
		return
	}
	p.seen = true
	p.received, p.sent = max(p.received, a.Statistics.TxBytes), max(p.sent, a.Statistics.RxBytes)
	p.backlog, p.rate = 0, 0
	for _, q := range queues {
		if qa := q.Attrs(); qa.LinkIndex == a.Index && qa.Parent == netlink.HANDLE_ROOT {
			p.queue(q)
		}
	}
	p.drops = max(p.drops, a.Statistics.TxDropped+a.Statistics.RxDropped+p.queueDrops)
}

// queue reads a root queueing discipline. Only the discipline that limits the link has a
// rate: the speed of a veth pair or a tap is not real.
func (p *port) queue(q netlink.Qdisc) {
	a := q.Attrs()
	if s := a.Statistics; s != nil && s.Queue != nil {
		p.backlog = uint64(s.Queue.Backlog)
		now := uint64(s.Queue.Drops)
		if a.Handle != p.handle || now < p.dropped {
			p.dropped = 0 // another queue, or an overflow of 32 bits
		}
		p.queueDrops += now - p.dropped
		p.dropped, p.handle = now, a.Handle
	}
	if tbf, ok := q.(*netlink.Tbf); ok {
		p.rate = tbf.Rate
	}
}

func (p *port) samples(dst []record.Sample) []record.Sample {
	if !p.seen {
		return dst
	}
	add := func(name string, u record.Unit, k record.SampleType, v uint64) {
		dst = append(dst, record.Sample{Name: name, Labels: p.labels, Unit: u, Kind: k, Value: float64(v)})
	}
	add(record.LinkReceived, record.Byte, record.Counter, p.received)
	add(record.LinkSent, record.Byte, record.Counter, p.sent)
	add(record.LinkBacklog, record.Byte, record.Gauge, p.backlog)
	add(record.LinkDrops, record.Count, record.Counter, p.drops)
	if p.rate > 0 {
		add(record.LinkRate, record.BytesPerSecond, record.Gauge, p.rate)
	}
	return dst
}
