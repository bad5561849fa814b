// Package kube talks to the API server of a Kubernetes cluster, in the few types that tare
// uses: client-go's REST client without its clientset, which would double the binary.
//
// The data path: 1. FromKubeconfig, or Inside in a pod, finds the server and the credentials;
// 2. the functions below create, read, watch and delete objects; 3. Forward opens a stream to a
// pod's port.
package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Client is a connection to an API server. It is safe for concurrent use.
type Client struct {
	Namespace string // of the kubeconfig's context, or of this pod
	Flags     string // see Where
	config    *rest.Config
	limit     *limit
	level     *level
	scheme    *runtime.Scheme
	params    runtime.ParameterCodec
	groups    map[schema.GroupVersion]*rest.RESTClient
}

// Where selects a cluster, as kubectl's flags do; empty fields are kubectl's defaults.
type Where struct {
	Kubeconfig, Context, Namespace string
	As                             string  // the user to impersonate
	QPS                            float32 // the most requests per second; 0: requestRate
	// Flags are the fields that select the cluster, as a command in a message repeats them: each flag after a blank.
	Flags string
}

// FromKubeconfig finds and reads a kubeconfig as kubectl does: the flag, $KUBECONFIG, ~/.kube/config.
func FromKubeconfig(w Where) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = w.Kubeconfig
	over := &clientcmd.ConfigOverrides{CurrentContext: w.Context}
	over.AuthInfo.Impersonate = w.As
	over.Context.Namespace = w.Namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, over)
	cfg, err := loaded.ClientConfig()
	if err != nil {
		return nil, unusable(rules, w, err)
	}
	ns, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig's namespace: %w", err)
	}
	cfg.QPS, cfg.Burst = w.QPS, int(2*w.QPS)
	c, err := newClient(cfg, ns)
	if err != nil {
		return nil, err
	}
	c.Flags = w.Flags
	return c, nil
}

// Inside returns a client for the cluster that this pod runs in, with the pod's service account. qps is the
// most requests per second; 0: requestRate.
func Inside(namespace string, qps float32) (*Client, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster of this pod: %w", err)
	}
	cfg.QPS, cfg.Burst = qps, int(2*qps)
	return newClient(cfg, namespace)
}

// Requests a second, and how many may come at once: a study makes few, but in bursts.
const (
	requestRate  = 50
	requestBurst = 100
)

func newClient(cfg *rest.Config, namespace string) (*Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &Client{Namespace: namespace, config: cfg, scheme: scheme, groups: map[schema.GroupVersion]*rest.RESTClient{}}
	c.params = runtime.NewParameterCodec(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	// Warnings of the server are about names that others chose, and come once for each request. klog would
	// print them among tare's own lines.
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: dialWithin, KeepAlive: 3 * dialWithin}).DialContext
	}
	cfg.WarningHandler = rest.NoWarnings{}
	if cfg.UserAgent = "tare"; cfg.QPS == 0 {
		cfg.QPS, cfg.Burst = requestRate, requestBurst
	}
	c.limit = newLimit(cfg.QPS, max(1, cfg.Burst))
	cfg.RateLimiter = c.limit
	c.level = &level{}
	cfg.Wrap(c.level.wrap)
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		metav1.AddToGroupVersion(scheme, gv)
		of := rest.CopyConfig(cfg)
		of.GroupVersion, of.NegotiatedSerializer = &gv, codecs.WithoutConversion()
		if of.APIPath = "/apis"; gv.Group == "" {
			of.APIPath = "/api"
		}
		// Decoding protobuf takes a tenth of the time of JSON. The server answers in JSON for custom resources.
		of.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		if c.groups[gv], err = rest.RESTClientFor(of); err != nil {
			return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
		}
	}
	return c, nil
}

// newScheme knows the types that tare uses.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		authorizationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
		kubevirtv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// dialWithin is the time limit for a connection to the API server.
const dialWithin = 10 * time.Second

// Unreached says what to do about an API server that does not answer.
const Unreached = "check that the cluster runs and that this machine can reach it (network, VPN), or give another --context"

// Advice says what to do about a request that no API server has answered.
func Advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "the kubeconfig's certificate-authority does not match this API server: fetch the kubeconfig again, as after a cluster was recreated, or give another --context"
	case errors.As(err, &name):
		return "set server in the kubeconfig to a name or address that is in the certificate, or set tls-server-name beside it to that name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the API server's certificate (`kubeadm certs renew all`), or correct the clock of this machine (`date`)"
	}
	return Unreached
}

// Ping asks the server once whether it answers. Other functions try for a minute.
func (c *Client) Ping(ctx context.Context) error {
	err := c.groups[corev1.SchemeGroupVersion].Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) {
		return nil
	}
	return fmt.Errorf("cannot reach the API server %s: %w; %s", c.Server(), err, Advice(err))
}

// Server is the address of the API server.
func (c *Client) Server() string { return c.config.Host }

// of is the client of a type's group, and the type's name in paths.
func (c *Client) of(obj runtime.Object) (*rest.RESTClient, string) {
	kinds, _, err := c.scheme.ObjectKinds(obj)
	if err != nil {
		panic(fmt.Sprintf("kube: %v", err)) // a mistake in this program: the type is not in the scheme
	}
	kind := kinds[0].GroupVersion().WithKind(strings.TrimSuffix(kinds[0].Kind, "List"))
	plural, _ := meta.UnsafeGuessKindToResource(kind) // it is right for all types of Kubernetes
	return c.groups[kind.GroupVersion()], plural.Resource
}

// Object is a Kubernetes object with a name.
type Object interface {
	runtime.Object
	metav1.Object
}

// Create creates obj, and fills it in with the server's version of it.
func (c *Client) Create(ctx context.Context, obj Object) error {
	group, name := c.of(obj)
	again := false
	return c.persist(ctx, func() error {
		err := group.Post().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).Body(obj).Do(ctx).Into(obj)
		if again && apierrors.IsAlreadyExists(err) { // the first try had arrived; names of a study are its own
			return c.Get(ctx, obj)
		}
		again = true
		return err
	})
}

// Try asks the API server to create obj in a dry run: with validation, defaults and admission, but
// without creating anything.
func (c *Client) Try(ctx context.Context, obj Object) error {
	group, name := c.of(obj)
	return group.Post().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, c.params).Body(obj).Do(ctx).Error()
}

// Get reads the object with obj's name and namespace into obj.
func (c *Client) Get(ctx context.Context, obj Object) error {
	group, name := c.of(obj)
	return c.persist(ctx, func() error {
		return group.Get().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).Name(obj.GetName()).Do(ctx).Into(obj)
	})
}

// List reads the objects with the labels in a namespace or, with "", in the whole cluster.
func (c *Client) List(ctx context.Context, namespace, labels string, into runtime.Object) error {
	group, name := c.of(into)
	return group.Get().NamespaceIfScoped(namespace, namespace != "").Resource(name).
		VersionedParams(&metav1.ListOptions{LabelSelector: labels}, c.params).Do(ctx).Into(into)
}

// PodsOn reads the pods on a node, of all namespaces.
func (c *Client) PodsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	var out corev1.PodList
	group, name := c.of(&out)
	err := group.Get().Resource(name).VersionedParams(&metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}, c.params).Do(ctx).Into(&out)
	return out.Items, err
}

// page is how many objects of Untyped come at once.
const page = 500

// Untyped reads the objects of a resource that this package has no type for, in a namespace or, with "", in the whole cluster. It stops after
// the page with which it has at least `most`.
func (c *Client) Untyped(ctx context.Context, of schema.GroupVersionResource, namespace, labels string, most int) (out []unstructured.Unstructured, err error) {
	d, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	o := metav1.ListOptions{LabelSelector: labels, Limit: page}
	for {
		list, err := d.Resource(of).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
		if o.Continue = list.GetContinue(); o.Continue == "" || len(out) >= most {
			return out, nil
		}
	}
}

// Delete removes the object with obj's name, after grace. It returns no error if the object is already gone.
func (c *Client) Delete(ctx context.Context, obj Object, grace time.Duration) error {
	group, name := c.of(obj)
	seconds := int64(grace.Seconds())
	background := metav1.DeletePropagationBackground
	err := c.persist(ctx, func() error {
		return group.Delete().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(name).Name(obj.GetName()).
			Body(&metav1.DeleteOptions{GracePeriodSeconds: &seconds, PropagationPolicy: &background}).Do(ctx).Error()
	})
	if IsGone(err) {
		return nil
	}
	return err
}

// DeleteAll removes the objects of a list's type that have the labels, in a namespace, without grace. The list then has those that it
// has removed, or with dry would remove, as far as the server tells them.
func (c *Client) DeleteAll(ctx context.Context, namespace, labels string, list runtime.Object, dry bool) error {
	group, name := c.of(list)
	none, background := int64(0), metav1.DeletePropagationBackground
	o := &metav1.DeleteOptions{GracePeriodSeconds: &none, PropagationPolicy: &background}
	if dry {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return group.Delete().Namespace(namespace).Resource(name).VersionedParams(&metav1.ListOptions{LabelSelector: labels}, c.params).Body(o).Do(ctx).Into(list)
}

// WatchPod is Watch for a pod. see gets nil once the pod is gone.
func (c *Client) WatchPod(ctx context.Context, namespace, name string, see func(*corev1.Pod) (bool, error)) error {
	return Watch(ctx, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, see)
}

// WatchEvents reports the events of a namespace to see, until ctx ends. If the server ends a
// watch, it begins again, so an event may be reported twice.
func (c *Client) WatchEvents(ctx context.Context, namespace string, see func(*corev1.Event)) error {
	events, _ := c.of(&corev1.Event{})
	for {
		var w watch.Interface
		err := c.persist(ctx, func() (err error) {
			w, err = events.Get().Namespace(namespace).Resource("events").VersionedParams(&metav1.ListOptions{Watch: true}, c.params).Watch(ctx)
			return err
		})
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
