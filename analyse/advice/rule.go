package advice

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"tare/analyse/cause"
)

//go:embed rules.yaml
var rulesFile []byte

// Rule is one piece of advice as data. Change, Why, Price, Warning and the patches are
// templates (fill.go).
type Rule struct {
	Name    string          `yaml:"name"`
	Causes  []cause.Name    `yaml:"cause"`  // one of these; none: of treatments where nothing costs
	Roles   []string        `yaml:"roles"`  // of the thread that is full, where the cause is a helper; none: any
	In      []string        `yaml:"in"`     // families of sandboxes; none: any
	When    []string        `yaml:"when"`   // conditions, which must all hold
	Set     []Setting       `yaml:"set"`    // factors that it changes
	Does    string          `yaml:"does"`   // what it sets, as a noun
	Change  string          `yaml:"change"` // what to do, as a clause that begins with a verb
	Why     string          `yaml:"why"`    // sentences
	Price   string          `yaml:"price"`
	Warning string          `yaml:"warning"`
	NotWith []string        `yaml:"not-with"` // rules whose settings must not stand beside its own
	Source  []string        `yaml:"source"`
	Patches []PatchTemplate `yaml:"patches"`
}

// Setting changes one factor of the study.
type Setting struct {
	Factor string `yaml:"factor"`
	To     string `yaml:"to"` // a word of targets, or platform=NAME and network=host of gVisor's flags, or a level
}

// PatchTemplate is a Patch to be filled.
type PatchTemplate struct {
	For  string   `yaml:"for"`
	File string   `yaml:"file"`
	In   []string `yaml:"in"`
	When []string `yaml:"when"`
	Text string   `yaml:"text"`
}

// Load says what a kind of workload loads, and what its workers are.
type Load struct {
	Kind    string `yaml:"kind"`
	Path    string `yaml:"path"`    // network, disk, launch or none
	Workers string `yaml:"workers"` // the parameter that says how many work at once; "" unknown
	Unless  int    `yaml:"unless"`  // its default
	// Vary are its parameters that change how much is under way, or how large each operation is.
	Vary []string `yaml:"vary"`
}

// Factor says how a level of a factor is set outside of a study.
type Factor struct {
	Name    string          `yaml:"name"`
	Care    []Care          `yaml:"care"`    // warnings; the first one that matches a level applies
	Patches []PatchTemplate `yaml:"patches"` // of which .Level is the level, and .Queues that of disk_queues: unless it has one, the same
}

// Care is what levels cost beside time: what a user must know before he sets one.
type Care struct {
	Begins string `yaml:"begins"` // of these levels, such as "all:"
	Text   string `yaml:"text"`   // a clause
}

// table is rules.yaml.
type table struct {
	Workloads []Load   `yaml:"workloads"`
	Factors   []Factor `yaml:"factors"`
	Rules     []Rule   `yaml:"rules"`
}

// Rules returns the rules in their order.
func Rules() []Rule { return loaded().Rules }

// Loads returns what is known of the kinds of workloads.
func Loads() []Load { return loaded().Workloads }

// PatchesFor lists what patches are for, in the order in which they are shown.
func PatchesFor() []string { return []string{"pod", "kubevirt", "runtime", "study", "shell"} }

// loaded reads the embedded rules once. A test checks that they can be read; here
// those that cannot are left out.
func loaded() table {
	t, err := embedded()
	if err != nil {
		return table{}
	}
	return t
}

var embedded = sync.OnceValues(func() (table, error) { return readRules(rulesFile) }) //nolint:gochecknoglobals // a function, evaluated once

// readRules reads and checks a file of rules.
func readRules(b []byte) (table, error) {
	var t table
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return t, fmt.Errorf("rules of advice: %w", err)
	}
	var names []string
	for i := range t.Rules {
		names = append(names, t.Rules[i].Name)
	}
	var errs []error
	for _, f := range t.Factors {
		if _, err := f.fill("1", "", nil); err != nil {
			errs = append(errs, fmt.Errorf("factor %q: %w", f.Name, err))
		}
	}
	for i := range t.Rules {
		if err := t.Rules[i].check(names); err != nil {
			errs = append(errs, fmt.Errorf("rule %q: %w", t.Rules[i].Name, err))
		}
		if slices.Index(names, t.Rules[i].Name) != i {
			errs = append(errs, fmt.Errorf("rule %q is there twice", t.Rules[i].Name))
		}
	}
	return t, errors.Join(errs...)
}

// check says what of a rule nobody would understand.
func (r *Rule) check(names []string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Name == "" || r.Change == "" || r.Does == "" {
		bad("it needs a name, does and change")
	}
	if len(r.Source) == 0 {
		bad("it has no source")
	}
	for _, c := range r.Causes {
		if !slices.Contains(cause.Names(), c) {
			bad("there is no cause %q", c)
		}
	}
	for _, n := range r.NotWith {
		if !slices.Contains(names, n) {
			bad("not-with: there is no rule %q", n)
		}
	}
	when, in := r.When, r.In
	for _, p := range r.Patches {
		when, in = slices.Concat(when, p.When), slices.Concat(in, p.In)
		if !slices.Contains(PatchesFor(), p.For) || p.File == "" || p.Text == "" {
			bad("a patch is for %q, file %q: it needs one of %v, a file and a text", p.For, p.File, PatchesFor())
		}
	}
	for _, w := range when {
		if _, ok := conditions()[w]; !ok {
			bad("there is no condition %q", w)
		}
	}
	for _, f := range in {
		if !slices.Contains(Families(), f) {
			bad("there is no family %q", f)
		}
	}
	return errors.Join(errs...)
}
