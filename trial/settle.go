package trial

import (
	"context"
	"time"

	"tare/record"
)

// settle waits until every sandbox is as old as its kind says that it must be
// (sandbox.Traits). Laying out files and waiting for servers is part of that age.
func (t *trial) settle(ctx context.Context) error {
	var wait time.Duration
	for _, ep := range t.endpoints {
		if ep.inst != nil {
			wait = max(wait, ep.kind.Traits(ep.spec.Options).Settle-time.Since(ep.started))
		}
	}
	if wait <= 0 {
		return nil
	}
	return t.phase(PhaseSettle, func() error {
		if err := sleep(ctx, wait); err != nil {
			return withCause(ctx, err)
		}
		return nil
	})
}

// settles is how long the sandboxes of a cell settle.
func (m *Maker) settles(c record.Cell) time.Duration {
	res, err := m.Study.Resolve(m.Catalogue, c)
	if k := m.Kinds[res.Sandbox]; err == nil && k != nil {
		return k.Traits(res.Options).Settle
	}
	return 0
}
