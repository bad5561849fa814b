package observer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tare/agent"
	"tare/cluster/control"
	"tare/collect"
	"tare/collect/remote"
	"tare/record"
	"tare/sandbox"
)

// Nodes are the observers of a study, seen from the coordinator.
type Nodes map[string]<-chan control.Arrival

// within bounds how long a node's connection may be awaited.
const within = 10 * time.Second

// wake is what the coordinator writes to a connection that it takes. The agent's protocol follows.
const wake = "!"

// take takes a connection of a node's observer.
func (n Nodes) take(ctx context.Context, node string) (io.ReadWriteCloser, error) {
	late := time.After(within)
	for {
		select {
		case c := <-n[node]:
			if _, err := io.WriteString(c, wake); err == nil {
				return c, nil
			}
			_ = c.Close() // it broke while it waited
			continue
		case <-ctx.Done():
		case <-late:
		}
		break
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx)
	}
	return nil, &silentError{node}
}

// silentError says that a node has no observer any more. A trial there would have no causes and no certificate, so the study goes on as if the
// node was lost.
type silentError struct{ node string }

func (e *silentError) Error() string {
	return fmt.Sprintf("the observer on node %s does not answer: its pod was deleted, or the node is lost; the study goes on without the node", e.node)
}

// Is reports whether target is sandbox.ErrNodeLost.
func (*silentError) Is(target error) bool { return target == sandbox.ErrNodeLost }

// Find asks a node's observer about a pod, and about its volumes at these paths.
func (n Nodes) Find(ctx context.Context, node, uid string, volumes ...string) (f Found, err error) {
	return f, n.ask(ctx, node, opFind, findBody{uid, volumes}, &f)
}

// Host asks a node for its description.
func (n Nodes) Host(ctx context.Context, node string) (h record.Host, err error) {
	return h, n.ask(ctx, node, opHost, nil, &h)
}

// Available asks a node how many bytes of its memory are available.
func (n Nodes) Available(ctx context.Context, node string) (b int64, err error) {
	return b, n.ask(ctx, node, opFree, nil, &b)
}

func (n Nodes) ask(ctx context.Context, node, op string, body, into any) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		c, err := n.take(ctx, node)
		if err != nil {
			return err
		}
		client, err := agent.Connect(ctx, c, c, agent.Place("observer"))
		if err == nil {
			return errors.Join(client.Call(ctx, op, body, into), c.Close())
		}
		_ = c.Close() // a connection that waited while the observer ended; there may be newer ones
	}
}

// Collector is the counterpart of a collector that the observer of a trial's node reads at an
// interval.
func (n Nodes) Collector(c collect.Collector, every time.Duration) collect.Collector {
	return &collector{c, every, n}
}

type collector struct {
	collect.Collector
	every time.Duration
	nodes Nodes
}

// Check implements collect.Collector: Open finds out what the node can read.
func (*collector) Check() error { return nil }

// Open implements collect.Collector. It opens the collector on each node that the scopes name. The node of the first scope is
// the trial's. From the other nodes, only the figures of their sandboxes count, and the processor time of nodes that pods of others
// run on: it gets the label of each such pod.
func (c *collector) Open(ctx context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	var order []string
	on := map[string][]sandbox.LocalScope{}
	for _, s := range scopes {
		if on[s.Node] == nil {
			order = append(order, s.Node)
		}
		on[s.Node] = append(on[s.Node], s)
	}
	var all probes
	for _, node := range order {
		dial := func(ctx context.Context) (io.ReadWriteCloser, error) { return c.nodes.take(ctx, node) }
		p, err := remote.New(c.Collector, c.every, dial).Open(ctx, on[node])
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.on = append(all.on, p.(collect.Fetcher)) // as package remote says
		var of []string
		for _, s := range on[node] {
			if s.Outside {
				of = append(of, s.Endpoint)
			}
		}
		all.outside = append(all.outside, of)
	}
	return &all, nil
}

// probes are those of one collector on the nodes of a trial.
type probes struct {
	on      []collect.Fetcher
	outside [][]string // beside on: ends that are others' pods
	times   []time.Time
	kept    []record.Sample
}

var (
	_ collect.Fetcher = (*probes)(nil)
	_ collect.Sourced = (*probes)(nil)
)

// Read implements collect.Probe.
func (p *probes) Read(dst []record.Sample) (_ []record.Sample, err error) {
	p.times = p.times[:0]
	for i, one := range p.on {
		from := len(dst)
		if dst, err = one.Read(dst); err != nil {
			return dst, err
		}
		p.kept = append(p.kept[:0], dst[from:]...)
		times := one.Times()
		dst = dst[:from]
		for j, x := range p.kept {
			switch {
			case i == 0 || x.Labels.Get(record.LabelEndpoint) != "":
				dst, p.times = append(dst, x), append(p.times, times[j])
			case x.Name == record.SystemCPU:
				of := x.Labels
				for _, end := range p.outside[i] {
					x.Labels = of.With(record.LabelEndpoint, end)
					dst, p.times = append(dst, x), append(p.times, times[j])
				}
			}
		}
	}
	return dst, nil
}

// Times implements collect.Stamped.
func (p *probes) Times() []time.Time { return p.times }

// Fetch implements collect.Fetcher.
func (p *probes) Fetch() {
	for _, one := range p.on {
		one.Fetch()
	}
}

// Source implements collect.Sourced: that of the trial's node.
func (p *probes) Source() string {
	if s, is := p.on[0].(collect.Sourced); is {
		return s.Source()
	}
	return "another process"
}

// Close implements collect.Probe.
func (p *probes) Close() error {
	var all []error
	for _, one := range p.on {
		all = append(all, one.Close())
	}
	return errors.Join(all...)
}
