package objects

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"time"

	"tare/workload/inside"
)

// event is an event of a watch (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
type event[T any] struct {
	Type   string `json:"type"`
	Object T      `json:"object"`
}

// Types of events: the object was deleted; the watch cannot go on.
const (
	deleted = "DELETED"
	failed  = "ERROR"
)

var errEnded = errors.New("the server ended the watch")

// watching turns a path with a query into a watch.
const watching = "&watch=true&timeoutSeconds=86400"

// stream calls see with each event of a watch, until the server ends the watch. The path must have a query.
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

// maxList is the most bytes of a list. It suffices for the volumes of a large cluster, of 1 kB each.
const maxList = 256 << 20

// list reads the existing objects, and the resource version from which to watch.
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

// feed follows the objects at a path. It lists them, which shows what is gone since the last list, and watches from there. It
// ends with ctx, or if the first list fails. It calls present after each list, and listed with the
// result of the first one.
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
		if !inside.SleepUntil(ctx, time.Now().Add(again)) {
			return
		}
	}
}
