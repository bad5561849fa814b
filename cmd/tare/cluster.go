package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"tare/agent"
	"tare/catalogue"
	"tare/cluster"
	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/observer"
	"tare/cluster/pod"
	"tare/cluster/probe"
	collectall "tare/collect/all"
	"tare/param"
	"tare/report/words"
	"tare/sandbox"
	sandboxall "tare/sandbox/all"
	"tare/site"
	"tare/site/claim"
	"tare/site/remote"
	"tare/study"
	workloadall "tare/workload/all"
)

// onCluster is a value of --on: a Kubernetes cluster.
const onCluster = "k8s"

// clusterFlags choose a cluster, by the names of kubectl's flags.
type clusterFlags struct {
	kube.Where
	image    string // of tare
	apps     map[string]string
	observe  bool
	insecure bool
	atOnce   int
}

// add adds the flags of a verb that measures.
func (f *clusterFlags) add(fl *pflag.FlagSet) {
	f.choose(fl)
	fl.StringVar(&f.image, "tare-image", "", "with --on k8s: the `REFERENCE` of tare's image, as \"tare image push tare\" prints it")
	fl.BoolVar(&f.insecure, "insecure-registry", false, "with --on k8s: ask registries about images even without TLS, or with a certificate that cannot be verified")
	fl.BoolVar(&f.observe, "observe", false, "with --on k8s: start privileged pods that read the measured pods' processors, memory and threads on the nodes, so that the report has causes")
}

// addApps adds the flag --app to a verb whose study names images.
func (f *clusterFlags) addApps(fl *pflag.FlagSet) {
	fl.StringToStringVar(&f.apps, "app", nil, "with --on k8s: `NAME=REFERENCE`, what pods pull for an image of the study, such as redis=registry.example.org/redis:7 (repeatable)")
	fl.Lookup("app").DefValue = "" // not []
}

// given is the name of a flag that only a cluster has and that is there; "" if there is none.
func (f *clusterFlags) given() string {
	for _, g := range []struct {
		name string
		is   bool
	}{
		{"tare-image", f.image != ""}, {"app", len(f.apps) > 0}, {"observe", f.observe}, {"at-once", f.atOnce != 0}, {"insecure-registry", f.insecure},
		{"kubeconfig", f.Kubeconfig != ""}, {"context", f.Context != ""}, {"namespace", f.Namespace != ""}, {"as", f.As != ""}, {"kube-api-qps", f.QPS != 0},
	} {
		if g.is {
			return g.name
		}
	}
	return ""
}

// addAtOnce adds the flag of a verb that makes many trials.
func (f *clusterFlags) addAtOnce(fl *pflag.FlagSet) {
	fl.Var((*nodesAtOnce)(&f.atOnce), "at-once", "with --on k8s: run `N` trials at once, each on its own node (default: one on each machine)")
}

// addImage adds them to a verb that has no --image of its own: it is tare's.
func (f *clusterFlags) addImage(fl *pflag.FlagSet) {
	f.add(fl)
	fl.StringVar(&f.image, "image", "", "the same as --tare-image")
}

// choose adds the flags that choose a cluster.
func (f *clusterFlags) choose(fl *pflag.FlagSet) {
	fl.StringVar(&f.Kubeconfig, "kubeconfig", "", "with --on k8s: the kubeconfig (default $KUBECONFIG, then ~/.kube/config)")
	fl.StringVar(&f.Context, "context", "", "with --on k8s: the kubeconfig's context (default its current one)")
	fl.VarP((*namespaceName)(&f.Namespace), "namespace", "n", "with --on k8s: an existing namespace to work in (default: each study creates one and deletes it)")
	fl.StringVar(&f.As, "as", "", "with --on k8s: the user to impersonate")
	fl.Var((*perSecond)(&f.QPS), "kube-api-qps", "with --on k8s: send at most `N` requests per second to the API server (default 50)")
}

// where selects the cluster. Messages repeat the flags that name it.
func (f *clusterFlags) where() kube.Where {
	w := f.Where
	for _, of := range []struct{ flag, value string }{{"kubeconfig", w.Kubeconfig}, {"context", w.Context}, {"as", w.As}} {
		if of.value != "" {
			w.Flags += " " + words.Shell("--"+of.flag, of.value)
		}
	}
	return w
}

// namespaceName is the value of -n.
type namespaceName string

// Set implements pflag.Value.
func (n *namespaceName) Set(text string) error {
	if err := cluster.CheckNamespace(text); err != nil {
		return err
	}
	*n = namespaceName(text)
	return nil
}

func (n *namespaceName) String() string { return string(*n) }

// Type implements pflag.Value.
func (*namespaceName) Type() string { return "string" }

// nodesAtOnce is the value of --at-once. 0 is the default.
type nodesAtOnce int

// Set implements pflag.Value.
func (n *nodesAtOnce) Set(text string) error {
	v, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return err // badFlag says what to write
	case v < 1:
		return errors.New("give 1 or more; without the flag, one trial runs on each machine")
	}
	*n = nodesAtOnce(v)
	return nil
}

func (n *nodesAtOnce) String() string { return strconv.Itoa(int(*n)) }

// Type implements pflag.Value.
func (*nodesAtOnce) Type() string { return "int" }

// perSecond is the value of --kube-api-qps. 0 is the default.
type perSecond float32

// mostPerSecond is more than an API server serves.
const mostPerSecond = 100000

// Set implements pflag.Value.
func (p *perSecond) Set(text string) error {
	v, err := strconv.ParseFloat(text, 32)
	if err != nil || !(v >= 1 && v <= mostPerSecond) { // NaN is neither
		return fmt.Errorf("write a number of requests from 1 to %d, such as 50", mostPerSecond)
	}
	*p = perSecond(v)
	return nil
}

func (p *perSecond) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 32) }

// Type implements pflag.Value.
func (*perSecond) Type() string { return "float32" }

// cluster is a cluster as a site. From then on studies are read with its sandboxes.
func (a *app) cluster(ctx context.Context, f clusterFlags) (*cluster.Site, error) {
	if f.image == "" {
		return nil, coded(exitUsage, "--on k8s needs --tare-image; push tare's image with `tare image push tare REGISTRY/NAME:TAG`, and give the reference that it prints")
	}
	s := &cluster.Site{Image: f.image, Workloads: workloads(), Apps: f.apps, Insecure: f.insecure, Observe: f.observe, AtOnce: f.atOnce, Namespace: f.Namespace, Say: a.say, Heard: func(text string) { a.say("%s", text) }, Left: func(command string) { a.left.Store(&command) }}
	if err := s.Reach(f.where()); err != nil {
		return nil, err
	}
	if err := s.Discover(ctx); err != nil {
		return nil, err
	}
	if err := s.LookUp(ctx); err != nil {
		return nil, err
	}
	a.has = s.Has()
	a.offers = func() (study.Catalogue, error) {
		cat := offeredIn(s.Kinds())
		cat.ReadFile = func(from string) ([]byte, error) { return s.Routes(ctx, from) }
		return cat, nil
	}
	return s, nil
}

// clean cleans a cluster.
func (f *clusterFlags) clean(ctx context.Context, study string, dry bool) ([]claim.Leftover, error) {
	s := cluster.Site{Namespace: f.Namespace}
	if err := s.Reach(f.where()); err != nil {
		return nil, err
	}
	found, err := s.Clean(ctx, study, dry)
	if errors.As(err, new(*cluster.NoStudyError)) {
		err = coded(exitUsage, "%w", err)
	}
	return found, err
}

// offeredIn is what a study can be made of on a cluster where these are the sandboxes. A host's study
// may have factors and definitions of sandboxes that a cluster lacks: these are left out.
func offeredIn(kinds []sandbox.Kind) study.Catalogue {
	cat := catalogue.Of(workloadall.Workloads(), kinds, collectall.Collectors())
	cat.Nodes = true
	others := sandboxall.Kinds(sandboxall.Env{})
	for _, k := range others {
		cat.Elsewhere = append(cat.Elsewhere, k.Params()...)
	}
	var bases []study.Base
	for _, b := range sandboxall.Bases(others) {
		bases = append(bases, catalogue.Base(b))
	}
	cat.Bases = append(bases, cat.Bases...) // as a host has them: a definition means the same in results
	cat.Lacks = func(level string) (what, instead string) { return lacksClass(kinds, level) }
	return cat
}

// lacksClass says that the cluster lacks the RuntimeClass of a level, and what to write instead.
func lacksClass(kinds []sandbox.Kind, level string) (what, instead string) {
	var has []string
	for _, k := range kinds {
		if _, is := k.(*pod.RuntimeClass); is && k.Name() != sandbox.Native {
			has = append(has, k.Name())
		}
	}
	what = fmt.Sprintf("the cluster has no RuntimeClass %q", level)
	if len(has) == 0 {
		return what, "it has no other RuntimeClass either; install one"
	}
	return what, fmt.Sprintf("%s (or leave the level out with --set sandbox=%s,...)", param.Suggest(level, has), sandbox.Native)
}

// sayDropped names the factors that --set has left without a sandbox.
func (a *app) sayDropped(st *study.Study) {
	if len(st.Dropped) > 0 {
		a.say("left out, because no sandbox of the study has them on the cluster: %s", strings.Join(st.Dropped, ", "))
	}
}

// coordinate makes a study's trials in a pod of the cluster, until the user leaves.
func coordinate(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	c := &cluster.Coordinator{Workloads: workloads(), Collectors: collectors, Answer: func(ctx context.Context, conn net.Conn, b cluster.Brief, of func(func(string, ...any)) site.Site) error {
		kinds := b.Kinds()
		return remote.Serve(ctx, conn, conn, remote.Served{
			Facts: remote.Facts{Root: true, Home: "/"},
			Site: func(say io.Writer) site.Site {
				return of(func(format string, args ...any) { fmt.Fprintf(say, format, args...) })
			},
			Parse: func(source []byte, overrides []string) (*study.Study, study.Catalogue, error) {
				cat := offeredIn(kinds)
				cat.Stored = true // the user's tare has checked it
				st, err := study.Parse("study.yaml", source, cat, overrides)
				return st, cat, err
			},
		})
	}}
	return c.Run(ctx)
}

// podAgent is the agent of a pod, which dials the coordinator.
func podAgent(ctx context.Context) error {
	signal.Ignore(syscall.SIGINT)
	dial, err := podDial()
	if err != nil {
		return err
	}
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	return agent.Serve(ctx, conn, conn, nil, agent.OwnProcess)
}

// observe reads the figures of a node's pods for the coordinator.
func observe(ctx context.Context) error {
	runtime.GOMAXPROCS(1) // a reading takes far less than a tick; to wake another thread for each collector costs the node more
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	dial, err := podDial()
	if err != nil {
		return err
	}
	return observer.Serve(ctx, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return dial(ctx)
	}, collectall.Collectors())
}

// answerDoctor answers `tare doctor` in a pod.
func answerDoctor(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	return probe.Serve(ctx, os.Getenv(pod.EnvToken))
}

// podDial reads what a pod's manifest says of the coordinator, and takes it out of the environment.
func podDial() (observer.Dial, error) {
	id, err := control.ReadIdentity(pod.IdentityDir)
	if err != nil {
		return nil, err
	}
	var at [4]string
	for i, name := range []string{pod.EnvCoordinator, pod.EnvName, pod.EnvToken, pod.EnvAddress} {
		at[i] = os.Getenv(name)
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (net.Conn, error) { return control.Dial(ctx, id, at[0], at[1], at[2], at[3]) }, nil
}
