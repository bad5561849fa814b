package study

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"tare/param"
)

// PublishedSets names the published figures that a study can be set beside. The
// figures are in package analyse/published, whose test holds the two together.
func PublishedSets() []string { return []string{"gvisor-guide"} }

// What the gVisor guide compares: gVisor on any of its platforms with runc.
const (
	PublishedBase  = "runc"
	PublishedOther = "runsc" // the level begins with it
)

// published reads the key. A study without both sides could not be set beside
// anything; under --set it is only smaller than the file.
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
	levels := d.sandboxLevels()
	switch {
	case d.study.Compare != FactorSandbox:
		d.bad(p.key, "remove it, or compare: sandbox", "the published figures compare sandboxes, and this study compares %s", d.study.Compare)
	case !slices.Contains(levels, PublishedBase):
		d.bad(p.key, "add "+PublishedBase+" to the levels of sandbox", "the published figures are ratios to %s, which this study does not measure", PublishedBase)
	case !slices.ContainsFunc(levels, func(l string) bool { return strings.HasPrefix(l, PublishedOther) }):
		d.bad(p.key, "add runsc-ptrace or runsc-systrap to the levels of sandbox", "the published figures are of %s, which this study does not measure", PublishedOther)
	}
}

func published() *jsonschema.Schema {
	s := words(PublishedSets())
	s.Description = "Published figures that the report sets the measured ratios beside."
	return s
}
