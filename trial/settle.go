package trial

import (
	"context"
	"time"

	"tare/sandbox"
)

// settle waits until every sandbox is as old as its kind says that it must be
// (sandbox.Settler). Laying out files and waiting for servers is part of that age.
func (t *trial) settle(ctx context.Context) error {
	var wait time.Duration
	for _, ep := range t.endpoints {
		if s, ok := ep.kind.(sandbox.Settler); ok && ep.inst != nil {
			wait = max(wait, s.Settle(ep.spec.Options)-time.Since(ep.started))
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
