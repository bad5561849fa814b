package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch reports each state of the object with like's namespace and name to see, from the present one
// on, until see returns true or an error, or ctx ends. see gets the zero T once the object is gone.
// If the server ends a watch, it begins again.
func Watch[T Object](ctx context.Context, c *Client, like T, see func(T) (bool, error)) error {
	var gone T
	group, resource := c.of(like)
	for {
		obj := like.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
		switch err := c.Get(ctx, obj); {
		case IsGone(err):
			_, err := see(gone)
			return err
		case err != nil:
			return err
		}
		if done, err := see(obj); done || err != nil {
			return err
		}
		w, err := group.Get().Namespace(like.GetNamespace()).Resource(resource).VersionedParams(&metav1.ListOptions{
			Watch: true, FieldSelector: "metadata.name=" + like.GetName(), ResourceVersion: obj.GetResourceVersion(),
		}, c.params).Watch(ctx)
		if passing(err) {
			continue // Get waits for the server
		}
		if err != nil {
			return err
		}
		if done, err := follow(ctx, w, see); done || err != nil {
			return err
		}
	}
}

// WatchPods is Watch for the pods with the labels. There may be none yet. It ends when one of them is gone.
func (c *Client) WatchPods(ctx context.Context, namespace, labels string, see func(*corev1.Pod) (bool, error)) error {
	pods, _ := c.of(&corev1.Pod{})
	for {
		var w watch.Interface
		err := c.persist(ctx, func() (err error) {
			w, err = pods.Get().Namespace(namespace).Resource("pods").VersionedParams(&metav1.ListOptions{Watch: true, LabelSelector: labels}, c.params).Watch(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if done, err := follow(ctx, w, see); done || err != nil {
			return err
		}
	}
}

// follow hands on what a watch says until it ends.
func follow[T Object](ctx context.Context, w watch.Interface, see func(T) (bool, error)) (bool, error) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, context.Cause(ctx)
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return false, nil // its time is over, or what it knew is too old
			}
			obj, is := e.Object.(T)
			if !is {
				continue
			}
			if e.Type == watch.Deleted {
				var gone T
				_, err := see(gone)
				return true, err
			}
			if done, err := see(obj); done || err != nil {
				return true, err
			}
		}
	}
}

// HasGroup reports whether the server has an API group. This needs no rights.
func (c *Client) HasGroup(ctx context.Context, name string) (bool, error) {
	group, _ := c.of(&corev1.Pod{})
	var text []byte
	err := c.persist(ctx, func() (err error) {
		text, err = group.Get().AbsPath("/apis").SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
		return err
	})
	var groups metav1.APIGroupList
	if err == nil {
		err = json.Unmarshal(text, &groups)
	}
	if err != nil {
		return false, fmt.Errorf("cannot list the API groups of %s: %w", c.Server(), err)
	}
	for _, g := range groups.Groups {
		if g.Name == name {
			return true, nil
		}
	}
	return false, nil
}
