package advice

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tare/analyse/cause"
	"tare/record"
	"tare/sizing"
)

// valid holds a patch to what it is written in.
func valid(t *testing.T, rule string, p Patch) {
	t.Helper()
	switch p.For {
	case "pod", "kubevirt":
		var tree map[string]any
		if err := yaml.Unmarshal([]byte(p.Text), &tree); err != nil {
			t.Errorf("%s: %v:\n%s", rule, err, p.Text)
			return
		}
		template, _ := dig(tree, "spec", "template").(map[string]any)
		if template == nil {
			t.Errorf("%s: no pod template is patched:\n%s", rule, p.Text)
		}
		annotations, _ := dig(template, "metadata", "annotations").(map[string]any)
		for k, v := range annotations {
			if _, ok := v.(string); !ok {
				t.Errorf("%s: the annotation %s is no string: %v", rule, k, v)
			}
		}
		if n, ok := dig(template, "spec", "domain", "ioThreads", "supplementalPoolThreadCount").(int); ok && (n < 4 || n > 8) {
			t.Errorf("%s: %d I/O threads", rule, n)
		}
	case "runtime":
		if strings.Contains(p.File, "kubelet") {
			if err := yaml.Unmarshal([]byte(p.Text), new(map[string]string)); err != nil {
				t.Errorf("%s: %v", rule, err)
			}
			return
		}
		if strings.Contains(p.File, "libvirt") {
			if err := xml.Unmarshal([]byte("<domain>"+p.Text+"</domain>"), new(struct{})); err != nil {
				t.Errorf("%s: %v:\n%s", rule, err, p.Text)
			}
			return
		}
		for line := range strings.Lines(p.Text) {
			if !tomlLine.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s: is no line of TOML: %s", rule, line)
			}
		}
	case "shell", "study":
		if out, err := exec.Command("sh", "-n", "-c", ":\n"+p.Text).CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %s", rule, p.Text, out)
		}
	}
}

var tomlLine = regexp.MustCompile(`^(\[[\w.]+\]|[\w-]+ = ("[^"]*"|\d+|true|false|\["[^"]*"(, "[^"]*")*\])( #.*)?)$`)

func level(c record.Cell, factor string) string {
	v, _ := c.Get(factor)
	return v
}

func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// TestNeverBoth: whatever the findings, no advice leads a cell to more default_vcpus under
// a limit that has no room for them, and what may be set together never does either.
func TestNeverBoth(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(v ...string) string { return v[r.IntN(len(v))] }
	both := 0
	for n := 0; n < 3000 || both == 0 && n < 30000; n++ { // one case in some hundreds has both
		l := newLab(pick("net", "fio", "other"), map[string]string{"connections": pick("1", "4", "16", "x")})
		for range 1 + r.IntN(4) {
			c := at("vm", "default_vcpus", pick("1", "2", "4", "all", "-1"), "cpu-limit", pick("none", "1", "2", "8"))
			if slices.ContainsFunc(l.in.Findings, func(f cause.Finding) bool { return f.Cell.Key() == c.Key() }) {
				continue // a cell has one finding
			}
			f := l.finds(cause.Names()[r.IntN(len(cause.Names()))], pick("vhost", "vmm", "iothread", "virtiofsd"), c)
			f.Treatment = "vcpus " + level(c, "default_vcpus") // as a study has it
			if r.IntN(3) > 0 {
				f.Price = &cause.Price{Cores: 5 * r.Float64(), Base: r.Float64(), Ratio: 4 * r.Float64()}
			}
			for _, other := range []string{"1", "2", "4"} {
				if r.IntN(2) == 0 {
					l.measures(swap(c, "default_vcpus", other), 0.5+r.Float64())
					l.measures(swap(c, "cpu-limit", other), 0.5+r.Float64())
				}
			}
		}
		items := Build(l.in)
		for i := range items {
			x := &items[i]
			if x.Contradicted {
				continue
			}
			for _, to := range x.Targets {
				both += neverBoth(t, l, x.Rule, &to)
			}
			if len(x.Targets) > 0 && x.Sets.Key() != x.Targets[0].To.Key() || len(x.Targets) == 0 && len(x.Sets) > 0 {
				t.Fatalf("%s sets %s, and its first target is %+v", x.Rule, x.Sets, x.Targets)
			}
		}
		docs, _, err := Documents(items, "sandbox", "pod")
		if err != nil {
			t.Fatal(err)
		}
		raised, lowered := false, false
		for _, d := range docs {
			valid(t, strings.Join(d.About, ", "), Patch{For: "pod", Text: d.Text})
			raised = raised || strings.Contains(d.Text, "default_vcpus")
			lowered = lowered || strings.Contains(d.Text, `cpu: "`)
		}
		if raised && lowered {
			t.Fatalf("more default_vcpus and a CPU limit are to be set together")
		}
	}
	if both == 0 {
		t.Error("no case had default_vcpus under a high limit: nothing was tested")
	}
}

// neverBoth holds one target to the rule, and returns how many of its cells have more
// default_vcpus under a limit.
func neverBoth(t *testing.T, l *lab, rule string, to *Target) (both int) {
	t.Helper()
	vcpus, more := to.To.Get("default_vcpus")
	limit, limited := to.To.Get("cpu-limit")
	if !more {
		return 0
	}
	if limited && limit != none {
		t.Fatalf("%s sets default_vcpus %s and the CPU limit %s", rule, vcpus, limit)
	}
	for _, c := range to.Cells {
		own, _ := c.Get("cpu-limit")
		if own == none || limited {
			continue
		}
		both++
		f := l.in.Findings[slices.IndexFunc(l.in.Findings, func(f cause.Finding) bool { return f.Cell.Key() == c.Key() })]
		if f.Price == nil {
			t.Fatalf("%s: default_vcpus %s under the limit %s, and nobody knows what is used", rule, vcpus, own)
		}
		have, _ := strconv.ParseFloat(own, 64)
		now, _ := strconv.ParseFloat(level(c, "default_vcpus"), 64)
		then, _ := strconv.ParseFloat(vcpus, 64)
		if have+sizing.Overhead < f.Price.Cores*then/now {
			t.Fatalf("%s: default_vcpus %s in the place of %g under the limit %s of %.2f cores used", rule, vcpus, now, own, f.Price.Cores)
		}
	}
	return both
}

// TestBadRules: what nobody would understand is said.
func TestBadRules(t *testing.T) {
	if _, err := embedded(); err != nil {
		t.Fatal(err)
	}
	good := "{name: a, cause: [quota], does: d, change: t, source: [s]%s}"
	for add, want := range map[string]string{
		", when: [sometimes]": `no condition "sometimes"`,
		", in: [lxc]":         `no family "lxc"`,
		", not-with: [b]":     `no rule "b"`,
		", patches: [{for: me, file: f, text: t}]": `a patch is for "me"`,
		", sorce: [x]": "sorce",
		"}, {name: a, cause: [bad], does: d, change: t": "is there twice",
	} {
		if _, err := readRules([]byte("rules: [" + fmt.Sprintf(good, add) + "]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", add, err, want)
		}
	}
	if _, err := readRules([]byte("rules: [" + fmt.Sprintf(good, "") + "]")); err != nil {
		t.Error(err)
	}
}

// TestTemplates: no template of any rule is broken, also where its words are not asked
// for by the cases above.
func TestTemplates(t *testing.T) {
	for _, r := range Rules() {
		b := &builder{rules: loaded()}
		l := newLab("net", nil)
		l.finds(cause.Quota, "", at("vm", "cpu-limit", "1"))
		b.in = l.in
		s := b.subject(0)
		f := b.filler(&group{rule: &r, list: []*subject{s}}, b.computed(&r, []*subject{s}))
		texts := []string{r.Change, r.Why, r.Price, r.Warning, r.Does}
		for _, p := range r.Patches {
			texts = append(texts, p.Text)
		}
		for _, text := range texts {
			if got := f.fill(text); strings.HasPrefix(got, "template: :") || strings.Contains(got, "<no value>") {
				t.Errorf("%s: %s", r.Name, got)
			}
		}
	}
}
