package kube

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A quota counts objects that are gone until its controller has seen that they are. So one that is full is asked again every roomEvery,
// for roomFor.
const (
	roomEvery = 100 * time.Millisecond
	roomFor   = 10 * time.Second
)

// CreateOnceFree is Create for an object that takes the place of one that is gone: a full quota may have room soon. It also returns when
// the last try began.
func (c *Client) CreateOnceFree(ctx context.Context, obj Object) (begun time.Time, err error) {
	for first := time.Now(); ; {
		begun = time.Now()
		if err = c.Create(ctx, obj); !full(err) || time.Since(first) > roomFor {
			return begun, err
		}
		select {
		case <-ctx.Done():
			return begun, err
		case <-time.After(roomEvery):
		}
	}
}

// full reports whether an object was refused because a quota is full (k8s.io/apiserver, plugin/pkg/admission/resourcequota).
func full(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}
