package objects

import (
	"os"
	"strings"
	"testing"

	"tare/param"
	"tare/workload/workloadtest"
)

// The captures are output of the load generator on a lab (docs/lab.md) with two nodes.
func claimCases() []workloadtest.Case {
	out := func(load string) map[string]string { return map[string]string{roleLoad: "testdata/" + load} }
	return []workloadtest.Case{
		{Name: "with pods", Params: param.Values{"count": "6", "steps": "2"}, Outputs: out("claims.jsonl")},
		{Name: "alone", Params: param.Values{"count": "12", "steps": "2", "consumer": ConsumerNone, "storage": "local-immediate"}, Outputs: out("claims-alone.jsonl")},
		{Name: "a schedule of claims that wait for each other", Params: param.Values{"parallel": "2", "rate": "1"}, Refused: true},
		{Name: "a class of claims without pods", Params: param.Values{"class": "gvisor", "consumer": ConsumerNone}, Refused: true},
		{Name: "more steps than claims", Params: param.Values{"count": "2"}, Refused: true},
		{Name: "more namespaces than claims", Params: param.Values{"namespaces": "31"}, Refused: true},
	}
}

func TestClaimsContract(t *testing.T) { workloadtest.Run(t, NewClaims(), claimCases()...) }
func FuzzParseClaims(f *testing.F)    { workloadtest.Fuzz(f, NewClaims(), claimCases()...) }

// TestImpossibleClaims: lines that contradict each other or the study are refused.
func TestImpossibleClaims(t *testing.T) {
	b, err := os.ReadFile("testdata/claims.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for what, changed := range map[string]string{
		"no claims":                      strings.Replace(text, `"claims":`, `"x":`, 1),
		"a stage that there is not":      strings.Replace(text, `"name":"bound"`, `"name":"boun"`, 1),
		"stages in another order":        strings.Replace(text, `"name":"answered"`, `"name":"written"`, 1),
		"more volumes than claims":       strings.Replace(text, `"volumes":3`, `"volumes":4`, 1),
		"claims that were bound at once": strings.Replace(text, `"bind_s":`, `"bind_s":0,"x":`, 1),
		"a stage without times":          strings.Replace(text, `"times":`, `"x":`, 1),
		"a negative part":                strings.Replace(text, `"part_s":`, `"part_s":-`, 1),
		"a stage that none can miss":     strings.Replace(text, `"stuck_in":""`, `"stuck_in":"gone"`, 1),
	} {
		if changed == text {
			t.Fatalf("%s: the capture does not have it", what)
		}
		if _, err := workloadtest.Parse(t, NewClaims(), roleLoad, param.Values{"count": "6", "steps": "2"}, changed); err == nil {
			t.Errorf("%s: it is accepted", what)
		}
	}
}

// TestBoundClaims: each verdict on claims follows from its readings.
func TestBoundClaims(t *testing.T) {
	way := func(stages ...Stage) *Claims { return &Claims{Way: stages, Settled: 5, Made: "lab/local"} }
	for _, c := range []struct {
		s    Step
		want By
		says string
	}{
		{Step{Made: 5, Failed: 5, Why: "exceeded quota", Claims: way()}, ByRefusal, "5 claims were not created: exceeded quota"},
		{Step{Made: 5, Claims: &Claims{Settled: 3, Stuck: Provisioned, Message: "no space"}}, ByProvisioner, "2 claims were not usable in time; most did not reach the stage provisioned: no space"},
		{Step{Made: 5, Claims: way(Stage{Name: Answered, Part: 0.1}, Stage{Name: Chosen, Part: 2}, Stage{Name: BoundTo, Part: 1})}, ByScheduler, "a claim needed 3.1 s until it was usable: 100 ms until the API server answered, 2 s until the scheduler chose a node"},
		{Step{Made: 5, Claims: way(Stage{Name: Answered, Part: 3}, Stage{Name: BoundTo, Part: 1}), Create: 1, Busy: 3.9}, ByAnswers, "all 4 workers waited"},
		{Step{Made: 5, Claims: way(Stage{Name: Attached, Part: 3}, Stage{Name: Mounted, Part: 1})}, ByAttacher, "3 s until the volume was attached"},
		{Step{Made: 5, Claims: way(Stage{Name: Mounted, Part: 1}, Stage{Name: Written, Part: 2})}, ByVolume, "2 s until the first byte was written"},
		{Step{Made: 5, Claims: way(Stage{Name: Scheduled, Part: 1}, Stage{Name: Mounted, Part: 3}), Kubelets: &Kubelets{Nodes: 2, RealPods: 5, Pods: 5, Sandbox: 2, Create: 0.2}}, ByRuntime, "3 s until the pod's program began; on 2 nodes: 2 s to create the sandbox"},
		{Step{Made: 5, Claims: way(Stage{Name: Scheduled, Part: 1}, Stage{Name: Mounted, Part: 3}), Kubelets: &Kubelets{Nodes: 2, RealPods: 5, Pods: 5, Sandbox: 0.5}}, ByKubelet, "and 2.5 s that the kubelet and its watch took"},
		{Step{Made: 5, Claims: way(Stage{Name: Mounted, Part: 3}), Kubelets: &Kubelets{RealPods: 5, Missing: "the load lacks the right"}}, ByNodes, "the load lacks the right"},
		{Step{Made: 5, Claims: &Claims{Way: []Stage{{Name: Provisioned, Part: 3}}, Volumes: 5, Appear: 2, Made: "lab/local"}}, ByProvisioner, "the provisioner lab/local created 2 volumes a second"},
	} {
		b := c.s.BoundWay(0, 4)
		if b.By != c.want || !strings.Contains(b.Text, c.says) || b.Share <= 0 || b.Share > 1 {
			t.Errorf("%+v, want %s and %q", b, c.want, c.says)
		}
	}
	for _, c := range []struct {
		c    Claims
		want By
		says string
	}{
		{Claims{Gone: 3, Held: ClaimGone}, ByController, "2 claims were not gone in time; most did not reach the stage claim_gone"},
		{Claims{Gone: 5, Removal: []Stage{{Name: PodGone, Part: 3}, {Name: VolumeGone, Part: 1}}, Vanished: 5, Vanish: 8}, ByNodes, "a claim's removal took 4 s: 3 s until the pod was gone, 1 s until the volume was gone"},
		{Claims{Gone: 5, Removal: []Stage{{Name: VolumeGone, Part: 1}}, Vanished: 5, Vanish: 8}, ByProvisioner, "; the provisioner removed 0.5 volumes a second"},
	} {
		s := Step{Made: 5, Claims: &c.c}
		if b := s.BoundRemoval(); b.By != c.want || !strings.Contains(b.Text, c.says) {
			t.Errorf("%+v, want %s and %q", b, c.want, c.says)
		}
	}
}
