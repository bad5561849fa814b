package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// An API server that restarts is asked again every persistEvery, for persistFor.
const (
	persistEvery = 500 * time.Millisecond
	persistFor   = time.Minute
)

// persist calls f until the server answers, but for errors that will not pass.
func (c *Client) persist(ctx context.Context, f func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, persistEvery, persistFor, true, func(context.Context) (bool, error) {
		last = f()
		if passing(last) && ctx.Err() == nil {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the API server has not answered for %s: %w", persistFor, last)
	}
	return err
}

// passing reports whether an error may pass: the server restarts, or has too much to do.
func passing(err error) bool {
	return net.IsConnectionRefused(err) || net.IsConnectionReset(err) || net.IsProbableEOF(err) || net.IsTimeout(err) || net.IsHTTP2ConnectionLost(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
