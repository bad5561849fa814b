package study

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"tare/param"
)

// PublishedSets names the published figures that a study can be compared with. The
// figures are in package analyse/published, whose test keeps the two in step.
func PublishedSets() []string { return []string{"gvisor-guide"} }

// PublishedRuntimes are the programs of the runtimes that the gVisor guide compares: the
// second, on any of gVisor's platforms, with the first.
func PublishedRuntimes() (base, other string) { return "runc", "runsc" }

// published reads the key. A study without both runtimes could not be compared;
// under --set it is only smaller than the file.
func (d *draft) published(p pair) {
	t, ok := d.text(p.val, "published")
	if !ok {
		return
	}
	if !slices.Contains(PublishedSets(), t) {
		d.bad(p.val, param.Suggest(t, PublishedSets()), "there are no published figures %q", t)
		return
	}
	d.study.Published = t
	if d.relaxed {
		return
	}
	base, other := PublishedRuntimes()
	has := func(runtime string) bool {
		return slices.ContainsFunc(d.sandboxLevels(), func(l string) bool { return d.traits(l).Runtime == runtime })
	}
	switch {
	case d.study.Compare != FactorSandbox:
		d.bad(p.key, "remove it, or compare: sandbox", "the published figures compare sandboxes, and this study compares %s", d.study.Compare)
	case !has(base):
		d.bad(p.key, "add "+base+" to the levels of sandbox", "the published figures are ratios to %s, which this study does not measure", base)
	case !has(other):
		d.bad(p.key, "add runsc-ptrace or runsc-systrap to the levels of sandbox", "the published figures are for %s, which this study does not measure", other)
	}
}

func published() *jsonschema.Schema {
	s := words(PublishedSets())
	s.Description = "Published figures that the report shows next to the measured ratios."
	return s
}
