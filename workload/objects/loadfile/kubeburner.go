package loadfile

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tare/workload/objects/pace"
)

// uuid is the one of all runs, so that a file is the same load each time. Objects of two loads are in different namespaces.
const uuid = "00000000-0000-4000-8000-000000000000"

// Labels that kube-burner gives each object, and that later jobs choose objects by.
const (
	burnerLabel     = "kube-burner.io/"
	labelJob        = burnerLabel + "job"
	labelIndex      = burnerLabel + "index"
	labelUUID       = burnerLabel + "uuid"
	labelRun        = burnerLabel + "runid"
	labelIteration  = burnerLabel + "job-iteration"
	labelReplica    = burnerLabel + "replica"
	maxSelected     = 20_000 // objects that are rendered to see their labels
	defaultReplicas = 1
)

// burn reads the jobs of a file.
type burn struct {
	*parser
	functions map[string]string
	made      []*creation
	job       *yaml.Node
	name      string
}

// What a job may say. Keys of the second list have no effect here, and the third list says why some are refused.
func jobKeys() (known, idle []string, refused map[string]string) {
	return []string{
			"name", "jobType", "jobIterations", "namespace", "namespacedIterations", "iterationsPerNamespace", "podWait", "waitWhenFinished", "maxWaitTimeout",
			"jobIterationDelay", "jobPause", "qps", "burst", "objects", "namespaceLabels", "namespaceAnnotations", "churnConfig", "objectDelay", "waitForDeletion", "defaultMissingKeysWithZero",
		}, []string{
			"cleanup", "gc", "preCreateNamespaces", "verifyObjects", "errorOnVerify", "skipIndexing", "preLoadImages", "preLoadPeriod", "preLoadNodeLabels", "preloadNodeLabels",
			"executionMode", "objectWait", "metricsAggregate", "metricsClosing", "measurements",
		}, map[string]string{
			"hooks":           "hooks run programs on the machine of kube-burner",
			"watchers":        "watches beside the load are not kept",
			"incrementalLoad": "incrementalLoad creates all objects anew at each step; write jobs with more jobIterations each",
		}
}

// burner reads a file of kube-burner.
func (p *parser) burner(root *yaml.Node) {
	if !p.keys(root, "the file", "jobs", "global", "metricsEndpoints", "indexers", "metricsEndpoint") {
		return
	}
	b := &burn{parser: p, functions: map[string]string{}}
	if g := get(root, "global"); g != nil {
		b.global(g)
	}
	for _, j := range p.list(get(root, "jobs"), "jobs") {
		b.read(j)
	}
}

func (b *burn) global(g *yaml.Node) {
	if !b.keys(g, "global", "measurements", "requestTimeout", "gc", "gcMetrics", "waitWhenFinished", "clusterHealth", "timeout", "functionTemplates", "deletionStrategy", "uuid", "runid", "indexerConfig", "writeToFile", "metricsDirectory") {
		return
	}
	for _, n := range b.list(get(g, "functionTemplates"), "functionTemplates") {
		src, ok := b.files[n.Value]
		if !ok {
			b.missing(n)
			return
		}
		b.functions[n.Value] = src
	}
	if n := get(g, "measurements"); n != nil && len(n.Content) > 0 {
		b.note(n, "change nothing; the workload objects has its own figures", "tare does not take kube-burner's measurements")
	}
}

// read reads a job.
func (b *burn) read(j *yaml.Node) {
	known, idle, refused := jobKeys()
	if j.Kind == yaml.MappingNode {
		for i := 0; i < len(j.Content); i += 2 {
			if why, ok := refused[j.Content[i].Value]; ok && len(j.Content[i+1].Content) > 0 {
				b.fail(j.Content[i], "remove it", "%s", why)
				return
			}
		}
	}
	if !b.keys(j, "a job", append(append(known, idle...), slices.Sorted(maps.Keys(refused))...)...) {
		return
	}
	b.job, b.name = j, text(j, "name")
	if len(b.name) > 63 || b.name == "" {
		b.fail(j, "write name: NAME, at most 63 characters", "the job has no name that is valid as a label")
	}
	switch kind := text(j, "jobType"); kind {
	case "", "create":
		b.create()
	case "delete":
		b.chosen(Delete)
	case "read":
		b.chosen(Get)
	case "patch":
		b.chosen(Patch)
	default:
		b.fail(get(j, "jobType"), "write create, delete, patch or read", "tare does not run jobs of the type %q", kind)
	}
}

// pace is the limit of requests of the job: the first so many at once, then so many a second.
func (b *burn) pace() pace.Pace {
	qps, burst := b.number(b.job, "qps", 0, 10_000), b.number(b.job, "burst", 0, 100_000)
	if qps == 0 {
		return pace.Pace{}
	}
	return pace.Pace{How: pace.Even, PerSecond: float64(qps), Burst: burst}
}

// timeout is how long a job waits.
func (b *burn) timeout() time.Duration {
	if n := get(b.job, "maxWaitTimeout"); n != nil {
		if d, err := time.ParseDuration(n.Value); err == nil && d > maxTime {
			return maxTime
		}
		return b.duration(n, "maxWaitTimeout", time.Nanosecond)
	}
	return 0
}

// create reads a job that creates objects.
func (b *burn) create() {
	iterations := b.number(b.job, "jobIterations", 1, MaxRequests)
	c := &creation{job: b.name, objects: b.objects()}
	for it := range iterations {
		for i, o := range c.objects {
			if o.once && it > 0 || it%o.every != 0 {
				continue
			}
			for r := range o.replicas {
				if len(c.refs) == MaxRequests || b.err != nil {
					b.fail(b.job, "write smaller numbers", "the job creates more than %d objects", MaxRequests)
					return
				}
				c.refs = append(c.refs, ref{int32(it), int32(i), int32(r + 1)})
			}
		}
	}
	c.gone, c.serial = make([]bool, len(c.refs)), b.serials(len(c.refs))
	if b.err != nil {
		return
	}
	c.space = b.namespaces(iterations)
	each := b.truth(b.job, "podWait", false)
	finished := b.truth(b.job, "waitWhenFinished", true)
	each = each && !finished
	delay := b.duration(get(b.job, "jobIterationDelay"), "jobIterationDelay", time.Nanosecond)
	all := make([]int, len(c.refs))
	for i := range all {
		all[i] = i
	}
	from := 0
	for to := 1; to <= len(all) && (each || delay > 0); to++ {
		if to == len(all) || c.refs[to].iteration != c.refs[from].iteration {
			b.make(c, all[from:to], each, delay)
			from = to
		}
	}
	b.make(c, all[from:], false, 0)
	b.made = append(b.made, c)
	b.last(finished)
	b.churn(c, iterations)
}

// last ends a job: its last batch is waited for, and followed by its pause.
func (b *burn) last(wait bool) {
	if n := len(b.plan.Batches); b.err == nil && n > 0 {
		x := &b.plan.Batches[n-1]
		x.Wait, x.Timeout = x.Wait || wait, b.timeout()
		x.Pause += b.duration(get(b.job, "jobPause"), "jobPause", time.Nanosecond)
	}
}

// make adds a batch that creates some of a creation's objects.
func (b *burn) make(c *creation, which []int, wait bool, pause time.Duration) {
	b.add(b.job, Batch{Verb: Create, Count: len(which), Pace: b.pace(), Wait: wait, Timeout: b.timeout(), Pause: pause, At: func(i int) (*Request, error) {
		return c.at(which[i])
	}})
}

// namespaces makes those of a job, and returns which is an iteration's.
func (b *burn) namespaces(iterations int) func(iteration int) int {
	base, per := text(b.job, "namespace"), max(1, b.number(b.job, "iterationsPerNamespace", 1, MaxRequests))
	if base == "" {
		base = b.name
	}
	labels, notes := b.texts(get(b.job, "namespaceLabels"), "namespaceLabels"), b.texts(get(b.job, "namespaceAnnotations"), "namespaceAnnotations")
	at := func(name string) int {
		i := b.space(b.job, name)
		if b.err == nil {
			s := &b.plan.Spaces[i]
			if s.Labels == nil {
				s.Labels, s.Annotations = map[string]string{}, map[string]string{}
			}
			s.Labels[labelJob], s.Labels[labelUUID] = b.name, uuid
			maps.Copy(s.Labels, labels)
			maps.Copy(s.Annotations, notes)
		}
		return i
	}
	if !b.truth(b.job, "namespacedIterations", true) {
		one := at(base)
		return func(int) int { return one }
	}
	var all []int
	for i := 0; i < iterations && b.err == nil; i += per {
		all = append(all, at(base+"-"+strconv.Itoa(i/per)))
	}
	return func(iteration int) int { return all[iteration/per] }
}

// churn deletes a part of the iterations, and creates it again, as often as the job says. The parts follow each other, so that
// each trial does the same.
func (b *burn) churn(c *creation, iterations int) {
	n := get(b.job, "churnConfig")
	if n == nil || !b.keys(n, "churnConfig", "cycles", "percent", "duration", "delay", "deleteDelay", "mode") {
		return
	}
	cycles, percent := b.number(n, "cycles", 0, 1000), b.number(n, "percent", 0, 100)
	mode := text(n, "mode")
	switch d := b.duration(get(n, "duration"), "duration", time.Nanosecond); {
	case cycles == 0 && d > 0:
		b.fail(get(n, "duration"), "write cycles: NUMBER", "churn with a duration has a different number of cycles in each trial")
	case cycles == 0 || percent == 0:
		return
	case !slices.Contains([]string{"", "namespaces", "objects"}, mode):
		b.fail(get(n, "mode"), "write namespaces or objects", "mode: %q is not a known value", mode)
	case d > 0:
		b.note(get(n, "duration"), "remove it", "duration has no effect together with cycles")
	}
	part := max(1, iterations*percent/100)
	for cycle := range cycles {
		var which []int
		first := cycle * part % iterations
		for i, f := range c.refs {
			if at := (int(f.iteration) - first + iterations) % iterations; at < part && (mode != "objects" || c.objects[f.object].churn) {
				which = append(which, i)
			}
		}
		b.add(n, Batch{Verb: Delete, Count: len(which), Pace: b.pace(), Wait: true, Timeout: b.timeout(), Pause: b.duration(get(n, "deleteDelay"), "deleteDelay", time.Nanosecond),
			At: func(i int) (*Request, error) { return c.at(which[i]) }})
		b.make(c, which, true, b.duration(get(n, "delay"), "delay", time.Nanosecond))
	}
	if mode != "objects" {
		b.note(n, "write mode: objects", "tare deletes the objects of churned namespaces one by one, and keeps the namespaces")
	}
}

// patchTypes are the media types of changes.
func patchTypes() []string {
	return []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", applyType}
}

const applyType = "application/apply-patch+yaml"

func selector(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ",")
}
