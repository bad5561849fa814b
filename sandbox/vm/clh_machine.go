package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"tare/host/spawn"
	"tare/sandbox/vm/clh"
)

// powerCLH is power for cloud-hypervisor. The machine boots at once; the agent comes by
// itself, through the socket that it is waited for at.
func powerCLH(ctx context.Context, binary string, h *hardware, opts spawn.Options) (m *machine, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var theirs []*os.File
	var ours []io.Closer
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		for _, c := range ours {
			if m == nil {
				_ = c.Close()
			}
		}
	}()
	listener, client, err := connected(h.dir)
	if err != nil {
		return nil, err
	}
	h.api, theirs = listener, append(theirs, listener)
	control, err := net.FileConn(client) // of a copy
	if err = errors.Join(err, client.Close()); err != nil {
		return nil, err
	}
	ours = append(ours, control)
	channel, err := awaitGuest(h.dir)
	if err != nil {
		return nil, err
	}
	ours = append(ours, channel)
	told, events, err := socketPair()
	if err != nil {
		return nil, err
	}
	h.events, theirs, ours = events, append(theirs, events), append(ours, told)
	// It opens the console's file once more by its name in /proc, which a socket does not let.
	console, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	h.console, theirs, ours = end, append(theirs, end), append(ours, console)
	l, err := h.lineCLH()
	if err != nil {
		return nil, err
	}
	started, err := launch(binary, l, h, opts)
	if err != nil {
		return nil, err
	}
	m = started
	m.vmm, m.channel, m.sent.to = cloudHypervisor, channel, channel
	for _, f := range theirs {
		_ = f.Close()
	}
	theirs = nil
	m.console = listen(console)
	go func() {
		clh.Watch(told, m.heard)
		_ = told.Close()
	}()
	go func() {
		<-m.proc.Done()
		channel.leave()
	}()
	if m.clh, err = clh.Connect(ctx, control); err != nil {
		return m, err
	}
	m.greeted = time.Now()
	return m, nil
}

// heard ends a machine whose guest has reset itself: it would be booted for ever.
func (m *machine) heard(e clh.Event) {
	if e.Resets() {
		m.reset.Store(true)
		_ = m.cmd.Process.Kill()
	}
}

// plugCLH is plug for cloud-hypervisor.
func (m *machine) plugCLH(ctx context.Context, o options) error {
	if o.size.VCPUsHotplugged == 0 && o.plug == 0 {
		return nil
	}
	var memory int64
	if o.plug > 0 {
		memory = o.size.MemoryBoot + o.plug
	}
	if err := m.clh.Resize(ctx, o.size.VCPUsTotal, memory); err != nil {
		return fmt.Errorf("plugging in %d vCPUs and %d MiB of memory: %w", o.size.VCPUsHotplugged, o.plug>>20, err)
	}
	return nil
}
