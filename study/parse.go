package study

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/record"
)

// MaxCells bounds the cells of a study, excluded ones included. Beyond it the cross product
// is a mistake: at a second a trial, one pass would take more than two days. It also bounds
// what a small file costs: 200,000 cells take about 2 s and 200 MB.
const MaxCells = 200_000

const maxEntries = 1000 // of include, exclude, workloads, sandboxes, zip, apply

// The keys of the file and of its sections, in the order of the documentation.
func rootKeys() []string {
	return []string{"study", "about", "seed", "compare", "baseline", "sandboxes", "factors", "workloads", "zip",
		"include", "exclude", "apply", "stop", "budget", "collect", "victim", "sentinel", "calls", "published", "tables", "turns", "retries", "timeout", "limits", "files"}
}

// workloadKeys are the keys of a workload that are not parameters.
func workloadKeys() []string { return []string{"kind", "responses", "turns"} }

// labelPattern is of workloads: a dot parts a family's kinds, as in http.node.
var labelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

const maxLabel = 63

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// defaultStop is the usual rule: the declared looks and targets of the
// statistics design.
func defaultStop() Stop {
	s := Stop{Looks: []int{3, 4, 6, 8, 12, 16}, Confidence: 0.95, Margin: 0.03}
	s.Width = s.Margin / 2
	return s
}

// adaptiveLooks are those of the adaptive rule. More of them cost little, because its levels are steep.
func adaptiveLooks() []int { return []int{3, 4, 5, 6, 8, 10, 12, 14, 16} }

const (
	defaultInterval = 100 * time.Millisecond
	defaultRetries  = 1
	maxTurns        = 100
	autoTurns       = "auto"
	firstTurns      = 2 // of autoTurns: with fewer, nothing tells the scatter of turns from that of starts
	defaultSeed     = 1
)

// pace is in how many turns the blocks of a workload are weighed; zero: the study's, or one cell after another.
type pace struct {
	turns int
	auto  bool // turns are those of the first blocks
}

// draft is a study while it is read.
type draft struct {
	*reader
	cat     Catalogue
	study   *Study
	limit   int
	options map[string]bool // combinations of sandboxes' parameters: whether they are possible
	relaxed bool            // --set changed levels, or a level is not there: entries of the file that match nothing now are not mistakes
	given   map[string]bool // factors whose levels --set gave; include brings no others
	refused map[string]bool // sandboxes whose definitions have errors
	pace    pace            // of workloads that do not say theirs

	loads    []*load
	factors  []*factor // the order of levels in a cell; 0 is the workload
	index    map[string]int
	zips     []zip
	includes []pick
	excludes []pick
	groups   [][]int // factors that move together, in the order they are decided
	shared   int     // the first so many groups are the same within a stratum
	compare  int
	tuned    []int // factors that stop.tune looks for together; none: the compared one alone
	sandbox  int
	asked    []asked // tables

	askedFigures []askedFigure     // likewise
	texts        map[string]string // of files, by path
	found        map[string]string // paths of files that files name, by the path of that file and the name
	hasVictim    bool              // the study has the section victim, right or wrong
	carries      bool              // the study has a section files, and they are from there
}

// Parse reads a study file. file is its name, for messages only. sets are
// --set arguments: "factor=level,level", "workload=label,label",
// "LABEL.parameter=value", "seed=7", "stop.fixed=3", "budget.time=1m" and the
// like; they replace what the file says before it is checked. The error is an
// Errors with every mistake and its place.
func Parse(file string, src []byte, cat Catalogue, sets []string) (*Study, error) {
	s, err := parse(file, src, cat, sets, MaxCells)
	if err == nil {
		s.Unpriced = unpriced(s, file, src, cat, sets)
	}
	return s, err
}

func parse(file string, src []byte, cat Catalogue, sets []string, limit int) (*Study, error) {
	d := &draft{
		reader: &reader{file: file, said: map[string]bool{}, origin: map[*yaml.Node]string{}},
		cat:    cat, limit: limit, index: map[string]int{}, given: map[string]bool{}, refused: map[string]bool{},
		texts: map[string]string{}, found: map[string]string{},
		study: &Study{
			Seed: defaultSeed, Stop: defaultStop(), Retries: defaultRetries,
			Collect: Collect{Names: slices.Clone(cat.Collectors), Interval: defaultInterval},
			Source:  bytes.Clone(src), Overrides: slices.Clone(sets),
		},
	}
	root := d.document(src)
	if root == nil {
		return nil, d.err()
	}
	nameRule(root)
	for _, s := range sets {
		if changed := d.override(root, cat, s); changed != "" {
			d.relaxed, d.given[changed] = true, true
		}
	}
	if err := d.err(); err != nil {
		return nil, err // what follows would judge a study that was not meant
	}
	keys := d.keys(root, "a study", rootKeys()...)
	d.scalars(root, keys)
	d.filesOf(keys["files"])
	d.sandboxesOf(keys["sandboxes"].val)
	d.stop(keys["stop"].val)
	d.budget(keys["budget"])
	d.collect(keys["collect"].val)
	d.workloads(root, keys["workloads"])
	d.victim(keys["victim"])
	d.factorsOf(root, keys["factors"])
	d.ownFactors()
	d.copiesOn()
	d.includes = d.picks(keys["include"].val, "include", true)
	d.excludes = d.picks(keys["exclude"].val, "exclude", false)
	d.zipsOf(keys["zip"].val)
	d.apply(keys["apply"].val)
	d.compared(keys)
	d.tunedOf(keys)
	d.sentinel(keys["sentinel"])
	d.calls(keys["calls"])
	d.published(keys["published"])
	d.tables(keys["tables"].val)
	if err := d.err(); err != nil {
		return nil, err
	}
	d.order(keys["apply"].key)
	if d.err() == nil {
		d.expand(keys)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	d.carry()
	d.victimRows()
	d.stratumResponses()
	d.objectiveOf(find(keys["stop"].val, "objective"))
	d.places(find(keys["stop"].val, "factors"))
	d.inOrder()
	d.mixOf(keys["stop"].val)
	d.tablesOf()
	d.figuresOf()
	if err := d.err(); err != nil {
		return nil, err
	}
	d.countingCells()
	d.finish()
	return d.study, nil
}

// finish copies what the expansion knows into the study.
func (d *draft) finish() {
	for _, w := range d.loads {
		pace := cmp.Or(w.pace, d.pace)
		d.study.Workloads = append(d.study.Workloads, Workload{
			Label: w.label, Kind: w.kind, Params: w.fixed, Responses: w.responses, Turns: pace.turns, AutoTurns: pace.auto, Line: w.at.Line,
		})
	}
	for _, f := range d.factors {
		if f.used { // under --set a factor may be left without a cell
			d.study.Factors = append(d.study.Factors, Factor{Name: f.name, Levels: f.levels})
		}
	}
	d.study.Traits = map[string]record.Traits{}
	for _, l := range d.kinds() {
		d.study.Traits[l] = d.traits(l)
	}
}

func (d *draft) scalars(root *yaml.Node, keys map[string]pair) {
	s := d.study
	if _, ok := keys["study"]; !ok {
		d.bad(root, "begin with `study: NAME`", "the study has no name")
	} else if t, ok := d.text(keys["study"].val, "study"); ok {
		if !namePattern.MatchString(t) {
			d.bad(keys["study"].val, "write letters, digits, - and _, at most 63, beginning with a letter or digit", "%q is not a name", t)
		}
		s.Name = t
	}
	if n := keys["about"].val; n != nil {
		if n.Kind != yaml.ScalarNode {
			d.bad(n, "write text", "about is a list or a mapping")
		}
		s.About = strings.TrimSpace(n.Value)
	}
	if t, ok := d.text(keys["seed"].val, "seed"); ok {
		v, err := strconv.ParseUint(t, 10, 64)
		if err != nil {
			d.bad(keys["seed"].val, "write a whole number from 0", "seed %q is not a number", t)
		}
		s.Seed = v
	}
	d.count(keys["retries"].val, "retries", 0, 100, &s.Retries)
	d.paceOf(keys["turns"].val, &d.pace)
	d.duration(keys["timeout"].val, "timeout", time.Second, &s.Timeout)
	if t, ok := d.text(keys["limits"].val, "limits"); ok {
		if !slices.Contains(limitsWords(), t) {
			d.bad(keys["limits"].val, "write mark or void", "limits %q is not possible", t)
		}
		s.VoidLimits = t == limitsWords()[1]
	}
}

// limitsWords say what a trial is worth whose limits are not in force: it is marked, or it is void.
func limitsWords() []string { return []string{"mark", "void"} }

// paceOf reads in how many turns blocks are weighed.
func (d *draft) paceOf(n *yaml.Node, dst *pace) {
	t, ok := d.text(n, "turns")
	if !ok {
		return
	}
	v, err := strconv.Atoi(t)
	switch {
	case t == autoTurns:
		*dst = pace{firstTurns, true}
	case err != nil || v < 1 || v > maxTurns:
		d.bad(n, fmt.Sprintf("write %s, or a whole number from 1 to %d", autoTurns, maxTurns), "turns %q is not possible", t)
	default:
		*dst = pace{v, false}
	}
}

// count reads a whole number into dst, if there is one.
func (d *draft) count(n *yaml.Node, what string, lo, hi int, dst *int) {
	t, ok := d.text(n, what)
	if !ok {
		return
	}
	v, err := strconv.Atoi(t)
	if err != nil || v < lo || v > hi {
		d.bad(n, fmt.Sprintf("write a whole number from %d to %d", lo, hi), "%s %q is not possible", what, t)
		return
	}
	*dst = v
}

func (d *draft) duration(n *yaml.Node, what string, lo time.Duration, dst *time.Duration) {
	t, ok := d.text(n, what)
	if !ok {
		return
	}
	v, err := param.ParseDuration(t)
	if err != nil {
		d.refuse(n, what+" ", err, "")
		return
	}
	if v < lo {
		d.bad(n, "write at least "+lo.String(), "%s %q is too short", what, t)
		return
	}
	*dst = v
}

// fraction reads 0.05 or 5% into dst; the value is above lo and below hi.
func (d *draft) fraction(n *yaml.Node, what string, lo, hi float64, dst *float64) {
	t, ok := d.text(n, what)
	if !ok {
		return
	}
	num, percent := strings.CutSuffix(t, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if percent {
		v /= 100
	}
	inside := v > lo && v < hi // false for a NaN
	if err != nil || !inside {
		d.bad(n, fmt.Sprintf("write a value between %g%% and %g%%", lo*100, hi*100), "%s %q is not possible", what, t)
		return
	}
	*dst = v
}

func (d *draft) stop(n *yaml.Node) {
	s := &d.study.Stop
	keys := d.keys(n, "stop", "rule", "fixed", "looks", "confidence", "width", "margin", "tune", "factors", "mix", "objective")
	if p, ok := keys["rule"]; ok {
		d.adaptive(p, keys)
	}
	d.count(keys["fixed"].val, "fixed", 1, 100_000, &s.Fixed)
	if p, ok := keys["fixed"]; ok {
		d.without(keys, p, "fixed", "looks", "width")
		s.Looks, s.Width = nil, 0
	}
	if p, ok := keys["looks"]; ok {
		s.Looks = nil
		for _, e := range d.list(p.val, "looks") {
			look, last := 0, 1
			if len(s.Looks) > 0 {
				last = s.Looks[len(s.Looks)-1]
			}
			d.count(e, "look", 1, 100_000, &look)
			if look > 0 && look <= last {
				d.bad(e, "write increasing numbers of blocks, 2 or more, such as [3, 4, 6, 8]", "look %d does not come after %d", look, last)
			} else if look > 0 {
				s.Looks = append(s.Looks, look)
			}
		}
		if len(s.Looks) == 0 {
			d.bad(p.key, "write looks: [3, 4, 6, 8]", "looks has no numbers of blocks")
		}
	}
	if p, ok := keys["tune"]; ok {
		d.tune(p, keys)
	}
	if p, ok := keys["objective"]; ok {
		d.objective(p, keys)
	}
	d.fraction(keys["confidence"].val, "confidence", 0.5, 1, &s.Confidence)
	d.fraction(keys["margin"].val, "margin", 0, 1, &s.Margin)
	if _, ok := keys["width"]; !ok && s.Fixed == 0 && !s.Searches() && !s.Adaptive {
		// Wider, and equal things would seldom be called equivalent.
		s.Width = s.Margin / 2
	}
	d.fraction(keys["width"].val, "width", 0, 1, &s.Width)
}

// without refuses the keys that have no effect together with the pair p. Messages call the pair what.
func (d *draft) without(keys map[string]pair, p pair, what string, excluded ...string) {
	for _, k := range excluded {
		if q, both := keys[k]; both {
			d.bad(q.key, "remove "+k+" or "+p.key.Value, "%s has no effect together with %s (line %d)", k, what, p.key.Line)
		}
	}
}

// nameRule writes "stop: adaptive" in its long form, which --set can change.
func nameRule(root *yaml.Node) {
	n := find(root, "stop")
	if n == nil || n.Kind != yaml.ScalarNode || empty(n) {
		return
	}
	name := *n
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "rule", Line: n.Line, Column: n.Column}
	*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column, Content: []*yaml.Node{key, &name}}
}

// adaptive reads the name of a rule.
func (d *draft) adaptive(p pair, keys map[string]pair) {
	if t, ok := d.text(p.val, "rule"); !ok {
		return
	} else if t != StopAdaptive {
		d.bad(p.val, "write adaptive, or stop in another way, such as {fixed: 10}, {width: 5%} or {tune: best}", "%q is not a stopping rule", t)
		return
	}
	d.without(keys, p, "rule: adaptive", "fixed", "width", "tune", "objective")
	s := &d.study.Stop
	s.Adaptive, s.Looks, s.Width = true, adaptiveLooks(), 0
}

// tune reads which level the study looks for: "best", or the fewest that reaches a share of it.
func (d *draft) tune(p pair, keys map[string]pair) {
	s := &d.study.Stop
	d.without(keys, p, "tune", "fixed", "looks", "width")
	s.Fixed, s.Looks, s.Width = 0, nil, 0
	if p.val.Value == TuneBest {
		s.Tune = 1
		return
	}
	d.fraction(p.val, "tune", 0.5, 1, &s.Tune)
}

func (d *draft) budget(p pair) {
	b, s := &d.study.Budget, d.study.Stop
	keys := d.keys(p.val, "budget", "blocks", "time")
	d.count(keys["blocks"].val, "blocks", 1, 100_000, &b.Blocks)
	d.duration(keys["time"].val, "time", time.Second, &b.Time)
	if b.Blocks == 0 {
		return
	}
	at := keys["blocks"].val
	if s.Fixed > b.Blocks {
		d.bad(at, fmt.Sprintf("write blocks: %d, or a smaller fixed", s.Fixed), "the budget of %d blocks ends before the fixed %d", b.Blocks, s.Fixed)
	}
	if len(s.Looks) > 0 && s.Looks[0] > b.Blocks {
		d.bad(at, fmt.Sprintf("write blocks: %d or more", s.Looks[0]), "the budget of %d blocks ends before the first look at %d", b.Blocks, s.Looks[0])
	}
}

func (d *draft) collect(n *yaml.Node) {
	c := &d.study.Collect
	keys := d.keys(n, "collect", "use", "rate")
	if p, ok := keys["use"]; ok {
		names, nodes := d.words(p.val, "use")
		for i, name := range names {
			if !d.cat.Stored && !slices.Contains(d.cat.Collectors, name) {
				d.bad(nodes[i], param.Suggest(name, d.cat.Collectors), "there is no collector %q", name)
			}
		}
		c.Names = names
	}
	if t, ok := d.text(keys["rate"].val, "rate"); ok {
		num, unit := strings.CutSuffix(t, "Hz")
		hz, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		possible := hz >= 0.1 && hz <= 1000 // false for a NaN
		if !unit || err != nil || !possible {
			d.bad(keys["rate"].val, "write a rate from 0.1Hz to 1000Hz, such as 10Hz", "%q is not a rate", t)
			return
		}
		c.Interval = time.Duration(float64(time.Second) / hz)
	}
}

// sandboxesOf reads the study's own sandboxes.
func (d *draft) sandboxesOf(n *yaml.Node) {
	for _, p := range d.entries(d.mapping(n, "sandboxes"), "sandboxes") {
		name := p.key.Value
		if !namePattern.MatchString(name) {
			d.bad(p.key, "write letters, digits, - and _, at most 63", "%q is not a name for a sandbox", name)
		} else if _, taken := d.cat.Sandboxes[name]; taken {
			d.bad(p.key, "choose another name", "sandbox %q already exists", name)
		}
		before := len(d.errs)
		if d.define(name, p); len(d.errs) > before {
			d.refused[name] = true
		}
	}
}

// define reads one definition.
func (d *draft) define(name string, p pair) {
	s := Sandbox{Name: name, Values: param.Values{}, Line: p.key.Line}
	kind := find(p.val, "kind")
	if kind != nil {
		s.Kind, _ = d.text(kind, "kind")
	}
	base, ok := d.cat.base(s.Kind)
	if !ok {
		d.bad(kind, "write "+strings.Join(d.cat.baseNames(), " or "), "%q is not a kind that a study can define", s.Kind)
		return
	}
	s.Kind = base.Name
	before := len(d.errs)
	factor := func(key string) string {
		if c, ok := d.classOf(key); !ok || c != ofSandbox && c != ofTare {
			return ""
		}
		return fmt.Sprintf("it is a factor, so write factors: {%s: [...]}", key)
	}
	keys := d.keysOr(factor, p.val, "sandbox "+name, append([]string{"kind"}, param.Names(base.Keys)...)...)
	for _, k := range base.Keys {
		if n := keys[k.Name].val; n != nil {
			s.Values[k.Name] = d.definition(n, k)
		}
	}
	if len(d.errs) > before {
		return
	}
	var err error
	if s.Values, err = param.Fill(base.Keys, s.Values); err == nil {
		s.info, err = base.Define(name, s.Values)
	}
	if err != nil {
		at := p.key
		if key, _, _ := strings.Cut(err.Error(), " "); keys[key].val != nil { // the one that it begins with
			at = keys[key].val
		}
		d.refuse(at, fmt.Sprintf("sandbox %q: ", name), err, "change it")
		return
	}
	if !d.free(name, p, s.info.Params) {
		return
	}
	d.study.Sandboxes = append(d.study.Sandboxes, s)
}

// definition reads the value of a definition's key.
func (d *draft) definition(n *yaml.Node, k param.Param) string {
	var lines []string
	element := func(at *yaml.Node, name, where string) {
		t, ok := d.text(at, where) // of one line
		if ok {
			if err := k.Element(name + t); err != nil {
				d.refuse(at, k.Name+": ", err, "change it")
			}
		}
		lines = append(lines, name+t)
	}
	switch k.Type {
	case param.List:
		for _, e := range d.list(n, k.Name) {
			element(e, "", "an element of "+k.Name)
		}
	case param.Map:
		for _, p := range d.entries(d.mapping(n, k.Name), k.Name) {
			if strings.Contains(p.key.Value, "=") {
				d.bad(p.key, "write NAME: TEXT", "a name in %s has a = in it", k.Name)
				continue
			}
			element(p.val, p.key.Value+"=", p.key.Value+" of "+k.Name)
		}
	default:
		t, _ := d.level(n, k.Name, []param.Param{k})
		return t
	}
	return strings.Join(lines, "\n")
}

// free tells whether the parameters of a defined sandbox have names that no other factor has.
func (d *draft) free(name string, p pair, ps []param.Param) bool {
	for _, own := range ps {
		_, of := param.Find(Factors(), own.Name)
		for _, w := range d.cat.Workloads {
			_, has := param.Find(w.Params, own.Name)
			of = of || has
		}
		if of || own.Name == FactorSandbox || own.Name == FactorWorkload {
			d.bad(p.key, "choose another name", "sandbox %q: tare or a workload has a factor %q", name, own.Name)
			return false
		}
	}
	return true
}

// entries bounds a list of entries.
func (d *draft) entries(ps []pair, where string) []pair {
	if len(ps) > maxEntries {
		d.bad(ps[maxEntries].key, "split the study", "%s has more than %d entries", where, maxEntries)
		return ps[:maxEntries]
	}
	return ps
}

// sandbox describes a level of the factor sandbox: a kind of the catalogue, or a sandbox of
// the study's own.
func (s *Study) sandbox(cat Catalogue, level string) SandboxInfo {
	for i := range s.Sandboxes {
		if s.Sandboxes[i].Name == level {
			return s.Sandboxes[i].info
		}
	}
	info, known := cat.Sandboxes[level]
	if cat.Others == nil || known && !cat.Stored {
		return info
	}
	for _, p := range cat.Others(level) { // results may be of another site, whose sandbox of this name has them
		if _, has := param.Find(info.Params, p.Name); !has {
			info.Params = append(slices.Clip(info.Params), p)
		}
	}
	return info
}

func (d *draft) traits(level string) record.Traits { return d.study.sandbox(d.cat, level).traits(nil) }

// kinds lists what can be a level of the factor sandbox.
func (d *draft) kinds() []string {
	out := sortedKeys(d.cat.Sandboxes)
	for _, s := range d.study.Sandboxes {
		out = append(out, s.Name)
	}
	return out
}
