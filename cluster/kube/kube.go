// Package kube talks to the API server of a Kubernetes cluster, in the few types that tare
// uses: client-go's REST client without its clientset, which would double the binary.
//
// The data path: 1. FromKubeconfig, or Inside in a pod, finds the server and the credentials;
// 2. the functions below create, read, watch and delete objects; 3. Forward opens a stream to a
// pod's port.
package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client is a connection to an API server. It is safe for concurrent use.
type Client struct {
	Namespace string // of the kubeconfig's context, or of this pod
	config    *rest.Config
	params    runtime.ParameterCodec
	groups    map[schema.GroupVersion]*rest.RESTClient
}

// Where selects a cluster, as kubectl's flags do; empty fields are kubectl's defaults.
type Where struct{ Kubeconfig, Context, Namespace string }

// FromKubeconfig reads a kubeconfig as kubectl does: the flag, $KUBECONFIG, ~/.kube/config.
func FromKubeconfig(w Where) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = w.Kubeconfig
	over := &clientcmd.ConfigOverrides{CurrentContext: w.Context}
	over.Context.Namespace = w.Namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, over)
	cfg, err := loaded.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("cannot find a cluster: there is no kubeconfig; set KUBECONFIG, or give --kubeconfig FILE")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	ns, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig's namespace: %w", err)
	}
	return newClient(cfg, ns)
}

// Inside is the cluster that this pod runs in, by its service account.
func Inside(namespace string) (*Client, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster of this pod: %w", err)
	}
	return newClient(cfg, namespace)
}

// Requests a second, and how many may come at once: a study makes few, but in bursts.
const (
	requestRate  = 50
	requestBurst = 100
)

func newClient(cfg *rest.Config, namespace string) (*Client, error) {
	scheme := runtime.NewScheme()
	c := &Client{Namespace: namespace, config: cfg, groups: map[schema.GroupVersion]*rest.RESTClient{}}
	c.params = runtime.NewParameterCodec(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	cfg.QPS, cfg.Burst, cfg.UserAgent = requestRate, requestBurst, "tare"
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, nodev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion} {
		metav1.AddToGroupVersion(scheme, gv)
		of := rest.CopyConfig(cfg)
		of.GroupVersion, of.NegotiatedSerializer = &gv, codecs.WithoutConversion()
		if of.APIPath = "/apis"; gv.Group == "" {
			of.APIPath = "/api"
		}
		var err error
		if c.groups[gv], err = rest.RESTClientFor(of); err != nil {
			return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
		}
	}
	return c, nil
}

// Server is the address of the API server.
func (c *Client) Server() string { return c.config.Host }

// resource is where the API server has a type: its group, and its name in paths.
func resource(obj runtime.Object) (schema.GroupVersion, string) {
	switch obj.(type) {
	case *corev1.Namespace, *corev1.NamespaceList:
		return corev1.SchemeGroupVersion, "namespaces"
	case *corev1.Node, *corev1.NodeList:
		return corev1.SchemeGroupVersion, "nodes"
	case *corev1.Event, *corev1.EventList:
		return corev1.SchemeGroupVersion, "events"
	case *corev1.Pod, *corev1.PodList:
		return corev1.SchemeGroupVersion, "pods"
	case *corev1.Secret, *corev1.SecretList:
		return corev1.SchemeGroupVersion, "secrets"
	case *corev1.ServiceAccount:
		return corev1.SchemeGroupVersion, "serviceaccounts"
	case *nodev1.RuntimeClassList:
		return nodev1.SchemeGroupVersion, "runtimeclasses"
	case *rbacv1.Role:
		return rbacv1.SchemeGroupVersion, "roles"
	case *rbacv1.RoleBinding:
		return rbacv1.SchemeGroupVersion, "rolebindings"
	}
	panic(fmt.Sprintf("kube: no resource is known for %T", obj)) // a mistake in this program
}

// Object is a Kubernetes object with a name.
type Object interface {
	runtime.Object
	metav1.Object
}

// Create makes obj and fills it in with what the server made of it.
func (c *Client) Create(ctx context.Context, obj Object) error {
	gv, name := resource(obj)
	return c.groups[gv].Post().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).Body(obj).Do(ctx).Into(obj)
}

// Get reads the object with obj's name and namespace into obj.
func (c *Client) Get(ctx context.Context, obj Object) error {
	gv, name := resource(obj)
	return c.groups[gv].Get().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).Name(obj.GetName()).Do(ctx).Into(obj)
}

// List reads the objects with the labels, of a namespace or, with "", of the cluster.
func (c *Client) List(ctx context.Context, namespace, labels string, into runtime.Object) error {
	gv, name := resource(into)
	return c.groups[gv].Get().NamespaceIfScoped(namespace, namespace != "").Resource(name).
		VersionedParams(&metav1.ListOptions{LabelSelector: labels}, c.params).Do(ctx).Into(into)
}

// Delete removes the object with obj's name, after grace. It is no error if it is gone.
func (c *Client) Delete(ctx context.Context, obj Object, grace time.Duration) error {
	gv, name := resource(obj)
	seconds := int64(grace.Seconds())
	background := metav1.DeletePropagationBackground
	err := c.groups[gv].Delete().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).Name(obj.GetName()).
		Body(&metav1.DeleteOptions{GracePeriodSeconds: &seconds, PropagationPolicy: &background}).Do(ctx).Error()
	if IsGone(err) {
		return nil
	}
	return err
}

// WatchPod reports each state of a pod to see, from the present one on, until see returns true or
// an error, or ctx ends. see gets nil once the pod is gone. A watch that the server ends begins
// again.
func (c *Client) WatchPod(ctx context.Context, namespace, name string, see func(*corev1.Pod) (bool, error)) error {
	pods := c.groups[corev1.SchemeGroupVersion]
	for {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		switch err := c.Get(ctx, pod); {
		case IsGone(err):
			pod = nil
		case err != nil:
			return err
		}
		if done, err := see(pod); done || err != nil || pod == nil {
			return err
		}
		w, err := pods.Get().Namespace(namespace).Resource("pods").VersionedParams(&metav1.ListOptions{
			Watch: true, FieldSelector: "metadata.name=" + name, ResourceVersion: pod.ResourceVersion,
		}, c.params).Watch(ctx)
		if err != nil {
			return err
		}
		done, err := follow(ctx, w, see)
		if done || err != nil {
			return err
		}
	}
}

// WatchEvents reports the events of a namespace to see, until ctx ends. A watch that the server ends
// begins again, so an event may be reported twice.
func (c *Client) WatchEvents(ctx context.Context, namespace string, see func(*corev1.Event)) error {
	for {
		w, err := c.groups[corev1.SchemeGroupVersion].Get().Namespace(namespace).Resource("events").
			VersionedParams(&metav1.ListOptions{Watch: true}, c.params).Watch(ctx)
		if err != nil {
			return err
		}
		for e := range w.ResultChan() {
			if event, is := e.Object.(*corev1.Event); is {
				see(event)
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// follow hands on what a watch says until it ends.
func follow(ctx context.Context, w watch.Interface, see func(*corev1.Pod) (bool, error)) (bool, error) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, context.Cause(ctx)
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return false, nil // its time is over, or what it knew is too old
			}
			pod, is := e.Object.(*corev1.Pod)
			if !is {
				continue
			}
			if e.Type == watch.Deleted {
				_, err := see(nil)
				return true, err
			}
			if done, err := see(pod); done || err != nil {
				return true, err
			}
		}
	}
}
