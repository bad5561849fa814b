package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tare/sandbox"
	"tare/workload"
)

// checkpoint has the role's command launched, saved and restored, Count times.
func (t *trial) checkpoint(ctx context.Context, ep *endpoint, stdout, stderr *output) error {
	c, ok := ep.kind.(sandbox.Checkpointer)
	if !ok {
		return &failure{kind: "start", role: ep.role.Name, err: errors.New(notSaveable(ep.kind.Name()))}
	}
	if ep.role.Probe == nil {
		return fmt.Errorf("the role %s has the mode checkpoint, but no probe to tell when it is ready", ep.role.Name)
	}
	enc := json.NewEncoder(stdout)
	for i := range ep.role.Count {
		spec, err := t.prepareNth(ctx, ep, i, "saved")
		if err != nil {
			return err
		}
		said := newOutput(ep.role.Name, "stdout", "")
		ready := func(ctx context.Context) error {
			// Nothing tells here that the command has ended: Checkpoint ends ctx then.
			_, err := t.answered(ctx, ep, spec.Network.Addr.Addr(), nil, nil, said, stderr)
			return err
		}
		got, err := c.Checkpoint(ctx, spec, ep.command(ep.role.Args, said, stderr), ready)
		if err != nil {
			return ep.saveFailed(ctx, err, said, stderr)
		}
		line := workload.CheckpointLine{
			Save: got.Save.Seconds(), Restore: got.Restore.Seconds(), Cold: got.Cold.Seconds(), Bytes: got.Bytes,
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// saveFailed keeps what a probe said of the server, and otherwise says that the
// sandbox failed.
func (ep *endpoint) saveFailed(ctx context.Context, err error, stdout, stderr *output) error {
	if f, ok := errors.AsType[*failure](err); ok {
		told := *f
		told.err = err
		return &told
	}
	return ep.judge(ctx, ep.role.Name, sandbox.Exit{}, err, stdout, stderr)
}

func notSaveable(kind string) string {
	return fmt.Sprintf("sandbox %s cannot be saved and restored", kind)
}
