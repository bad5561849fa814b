package objects

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"time"
)

// event is one of a watch (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
type event[T any] struct {
	Type   string `json:"type"`
	Object T      `json:"object"`
}

// Types of events: the object is gone, and the watch cannot go on.
const (
	deleted = "DELETED"
	failed  = "ERROR"
)

var errEnded = errors.New("the server ended the watch")

// watching makes a watch of a path that has a query.
const watching = "&watch=true&timeoutSeconds=86400"

// stream gives the events of a watch to see until the server ends it. The path has a query.
func stream[T any](ctx context.Context, a *api, path string, see func(e *event[T], at time.Time)) error {
	resp, err := a.open(ctx, path+watching, "application/json")
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	lines := json.NewDecoder(resp.Body)
	for {
		var e event[T]
		if err := lines.Decode(&e); err != nil {
			return err
		}
		at := time.Now()
		if e.Type == failed {
			return errEnded
		}
		see(&e, at)
	}
}

// maxList bounds a list, in bytes: that of the volumes of a large cluster, with 1 kB each.
const maxList = 256 << 20

// list reads the objects that there are, and the version to watch from.
func list[T any](ctx context.Context, a *api, path string) (items []T, version string, err error) {
	resp, err := a.open(ctx, path, "application/json")
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	var all struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []T `json:"items"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&all)
	return all.Items, all.Metadata.ResourceVersion, err
}

// feed follows the objects at a path: it lists them, which tells what is gone since the last time, and watches from there. It
// ends with ctx, or if it cannot list them the first time; listed hears of that.
func feed[T any](ctx context.Context, a *api, path string, see func(e *event[T], at time.Time), present func([]T, time.Time), broke func(), listed func(error)) {
	for begun := false; ctx.Err() == nil; {
		items, version, err := list[T](ctx, a, path)
		at := time.Now()
		if err == nil {
			for i := range items {
				see(&event[T]{Object: items[i]}, at)
			}
			present(items, at)
		}
		if !begun {
			begun = true
			if listed(err); err != nil {
				return
			}
		}
		if err == nil {
			err = stream(ctx, a, path+"&resourceVersion="+url.QueryEscape(version), see)
		}
		if !errors.Is(err, io.EOF) {
			broke()
		}
		if !sleepUntil(ctx, time.Now().Add(again)) {
			return
		}
	}
}
