package study

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"tare/param"
)

// Schema returns the JSON Schema (draft 2020-12) of the study file, so that
// editors complete it and explain its keys. It is a help, not the judge: it
// accepts some files that Parse refuses (levels that do not exist together), and
// refuses odd spellings that Parse takes (a seed in quotes).
func Schema(cat Catalogue) ([]byte, error) {
	root := object("A study: what to measure, in which sandboxes, how precisely.", props{
		{"study", pattern("Name of the study.", namePattern.String())},
		{"about", text("What the study is for.")},
		{"seed", whole("Seed of the random order of trials. Default: 1.", 0)},
		{"compare", text("The compared factor. Default: sandbox.")},
		{"baseline", scalar("The level that the others are compared with; " + cat.Native + " unless said, or the first level of another compared factor.")},
		{"sandboxes", mapOf("Sandboxes that this study defines.", sandboxSchema(cat))},
		{"factors", factorsSchema(cat)},
		{"workloads", workloadsSchema(cat)},
		{"zip", &jsonschema.Schema{Description: "Groups of factors whose levels move together.", Type: "array", Items: &jsonschema.Schema{Type: "array", MinItems: new(2), Items: text("A factor.")}}},
		{"include", picksSchema("Cells in addition to the cross product. Factors that an entry does not name have their defaults.")},
		{"exclude", picksSchema("Cells of the cross product to leave out: those with all the levels of an entry.")},
		{"apply", mapOf("Factors that apply only under some levels of others.", mapOf("Another factor and its levels.", oneOrMore(scalar(""))))},
		{"stop", ruleOr(section("When a stratum (a workload with one choice of all factors but the compared one) has enough blocks: fixed, or at the first look at which its intervals are narrow.", props{
			{"rule", words([]string{StopAdaptive})},
			{"fixed", whole("Blocks, whatever they show.", 1)},
			{"looks", &jsonschema.Schema{Description: "Increasing numbers of blocks after which to look. Default: [3, 4, 6, 8, 12, 16].", Type: "array", MinItems: new(1), Items: whole("", 2)}},
			{"confidence", fraction("Confidence of the intervals. Default: 95%.")},
			{"width", fraction("Relative half-width at which an interval is narrow enough. Default: half the margin.")},
			{"margin", fraction("Ratios this near to 1 are equivalent. Default: 3%.")},
			{"tune", pattern("Look for the lowest level of the compared factor that reaches this share of the best, or for the best. Blocks measure only the levels that may be the answer.", `^\s*([0-9.]+\s*%|0?\.[0-9]+|best)\s*$`)},
			{"factors", &jsonschema.Schema{Description: "With tune: the factors to look for together, the compared one first. Default: the compared factor alone.", Type: "array", MinItems: new(1), MaxItems: new(maxTuned), Items: text("A factor.")}},
			{"objective", pattern("Look for the highest level of the compared factor, a load, at which this holds. Blocks measure only the loads that may be the answer.", objectivePattern.String())},
			{"mix", mapOf("With tune: workloads with their weights, which get one level together.", &jsonschema.Schema{Type: "number", ExclusiveMinimum: new(0.0)})},
		}))},
		{"budget", section("Bounds of the whole study.", props{
			{"blocks", whole("Most blocks of each stratum.", 1)},
			{"time", value(param.Param{Type: param.Duration, Help: "At most so long."})},
		})},
		{"collect", section("What is read from the host meanwhile.", props{
			{"use", &jsonschema.Schema{Description: "Collectors; [] for none. Default: all.", AnyOf: []*jsonschema.Schema{words(cat.Collectors), {Type: "array", Items: words(cat.Collectors), UniqueItems: true}}}},
			{"rate", pattern("How often, such as 10Hz.", `^\s*[0-9.eE+-]+\s*Hz$`)},
		})},
		{"victim", victimSchema(cat)},
		{"sentinel", sentinelSchema(cat)},
		{"calls", callsSchema()},
		{"published", published()},
		{"tables", tablesSchema()},
		{"turns", turnsSchema("Turns in which the cells of a block are measured, in sandboxes that start together; auto: as many as narrow the intervals soonest. Default: one cell after another.")},
		{"retries", whole("Retries of a failed trial. Default: 1.", 0)},
		{"limits", limitsSchema()},
		{"timeout", value(param.Param{Type: param.Duration, Help: "Longest time of a trial; four times what it is expected to take and a minute unless said."})},
	})
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "Tare study"
	root.Required = []string{"study", "workloads"}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the JSON Schema: %w", err)
	}
	return append(out, '\n'), nil
}

// props are an object's properties in the order in which editors offer them.
type props []prop

type prop struct {
	name   string
	schema *jsonschema.Schema
}

// orNull lets an omitted value ("noop:") pass.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	s.Types, s.Type = []string{s.Type, "null"}, ""
	return s
}

func object(help string, ps props) *jsonschema.Schema {
	s := &jsonschema.Schema{Description: help, Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: never()}
	for _, p := range ps {
		s.Properties[p.name] = p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.name)
	}
	return s
}

// section is an object that may be left empty.
func section(help string, ps props) *jsonschema.Schema { return orNull(object(help, ps)) }

// ruleOr is a section of which the name of a rule is a short form.
func ruleOr(long *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Description: long.Description, AnyOf: []*jsonschema.Schema{words([]string{StopAdaptive}), long}}
}

func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func mapOf(help string, of *jsonschema.Schema) *jsonschema.Schema {
	return orNull(&jsonschema.Schema{Description: help, Type: "object", AdditionalProperties: of})
}

func text(help string) *jsonschema.Schema {
	return &jsonschema.Schema{Description: help, Type: "string"}
}

// scalar is any level: YAML reads 1, 1.5 and true as other types than text.
func scalar(help string) *jsonschema.Schema {
	return &jsonschema.Schema{Description: help, Types: []string{"string", "number", "boolean"}}
}

func pattern(help, re string) *jsonschema.Schema {
	return &jsonschema.Schema{Description: help, Type: "string", Pattern: re}
}

func whole(help string, least float64) *jsonschema.Schema {
	return &jsonschema.Schema{Description: help, Type: "integer", Minimum: &least}
}

func turnsSchema(help string) *jsonschema.Schema {
	return &jsonschema.Schema{Description: help, AnyOf: []*jsonschema.Schema{whole("", 1), words([]string{autoTurns})}}
}

func fraction(help string) *jsonschema.Schema {
	zero, one := 0.0, 1.0
	return &jsonschema.Schema{Description: help, AnyOf: []*jsonschema.Schema{
		{Type: "number", ExclusiveMinimum: &zero, ExclusiveMaximum: &one},
		{Type: "string", Pattern: `^\s*[0-9.eE+-]+\s*%$`},
	}}
}

func limitsSchema() *jsonschema.Schema {
	s := words(limitsWords())
	s.Description = "Whether a trial counts that ran under another limit than was asked for: mark (it counts, with a warning; default), void (it has failed)."
	return s
}

func words(ws []string) *jsonschema.Schema {
	s := &jsonschema.Schema{Enum: make([]any, len(ws))}
	for i, w := range ws {
		s.Enum[i] = w
	}
	return s
}

func oneOrMore(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Description: s.Description, AnyOf: []*jsonschema.Schema{
		s, {Type: "array", MinItems: new(1), Items: s.CloneSchemas()},
	}}
}

// value is one value of a parameter.
func value(p param.Param) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	number := func(kind string) *jsonschema.Schema {
		n := &jsonschema.Schema{Type: kind}
		if p.Max > p.Min {
			n.Minimum, n.Maximum = &p.Min, &p.Max
		}
		return n
	}
	quoted := pattern("", `^\s*[+-]?[0-9.]`) // a number in quotes is one, too
	switch p.Type {
	case param.Int:
		s.AnyOf = []*jsonschema.Schema{number("integer"), quoted}
	case param.Float:
		s.AnyOf = []*jsonschema.Schema{number("number"), quoted}
		if p.Milli {
			s.AnyOf = append(s.AnyOf, pattern("", `^\s*[0-9]+m\s*$`))
		}
	case param.Size:
		s.AnyOf = []*jsonschema.Schema{number("integer"), pattern("", `^\s*[+]?[0-9.]+([eE][+-]?[0-9]+)?\s*([KMGT]i?B?|kB?|B)?\s*$`)}
	case param.Duration:
		s.AnyOf = []*jsonschema.Schema{pattern("", `^\s*[+]?([0-9.]+ *(ns|us|µs|μs|ms|s|m|h) *)+$`), {Enum: []any{0, "0"}}}
	case param.Rate:
		s.AnyOf = []*jsonschema.Schema{pattern("", `^\s*[+]?[0-9.]+([eE][+-]?[0-9]+)?\s*[kKmMgG]?[bB][iI][tT](/[sS])?\s*$`)}
	case param.Bool:
		s.AnyOf = []*jsonschema.Schema{{Type: "boolean"}, words([]string{"true", "false"})}
	case param.CPUs:
		s.AnyOf = []*jsonschema.Schema{whole("", 0), pattern("", `^[0-9, -]+$`)}
	case param.Enum:
		s.AnyOf = []*jsonschema.Schema{words(p.Words)}
	case param.List:
		s.AnyOf = oneOrMore(scalar("")).AnyOf
		s.AnyOf[1].MinItems = nil
	case param.Map:
		s.AnyOf = []*jsonschema.Schema{{Type: "object", AdditionalProperties: scalar("")}}
	default:
		s.AnyOf = []*jsonschema.Schema{scalar("")}
	}
	if p.Type != param.Enum && len(p.Words) > 0 {
		s.AnyOf = append(s.AnyOf, words(p.Words))
	}
	if len(s.AnyOf) == 1 {
		s = s.AnyOf[0]
	}
	s.Description = describe(p)
	return s
}

func describe(p param.Param) string {
	parts := []string{}
	if p.Help != "" {
		parts = append(parts, p.Help)
	}
	if p.Name != "" {
		about := string(p.Type)
		if p.Default != "" {
			about += ", " + p.Default + " unless said"
		}
		parts = append(parts, "("+about+")")
	}
	return strings.Join(parts, " ")
}

// sandboxSchema is a definition: of one base, or of any, where the keys of a base depend on
// the key kind.
func sandboxSchema(cat Catalogue) *jsonschema.Schema {
	ps, seen := props{{"kind", words(cat.baseNames())}}, map[string]*jsonschema.Schema{}
	var about []string
	for _, b := range cat.Bases {
		about = append(about, "kind "+b.Name+": "+b.About)
		for _, k := range b.Keys {
			help := "kind " + b.Name + ": " + k.Help
			if s := seen[k.Name]; s != nil {
				s.Description += "\n" + help
				continue
			}
			s := value(k)
			s.Description = help
			seen[k.Name] = s
			ps = append(ps, prop{k.Name, s})
		}
	}
	return object("A sandbox that this study defines. "+strings.Join(about, "; "), ps)
}

func factorsSchema(cat Catalogue) *jsonschema.Schema {
	// A study's own sandboxes are levels as well, so the kinds are offered, not
	// required.
	sandbox := &jsonschema.Schema{Description: "where the workload runs: a kind of sandbox, or one of the section sandboxes", AnyOf: []*jsonschema.Schema{words(sortedKeys(cat.Sandboxes)), scalar("")}}
	ps := props{{FactorSandbox, oneOrMore(sandbox)}}
	for _, p := range Factors() {
		ps = append(ps, prop{p.Name, oneOrMore(value(p))})
	}
	// One name may be a parameter of several kinds, each with its own bounds.
	shared := map[string][]*jsonschema.Schema{}
	add := func(owner string, params []param.Param) {
		for _, p := range params {
			v := value(p)
			v.Description = owner + ": " + v.Description
			shared[p.Name] = append(shared[p.Name], v)
		}
	}
	for _, k := range sortedKeys(cat.Workloads) {
		add("workload "+k, cat.Workloads[k].Params)
	}
	for _, k := range sortedKeys(cat.Sandboxes) {
		add("sandbox "+k, cat.Sandboxes[k].Params)
	}
	for _, name := range sortedKeys(shared) {
		of := shared[name]
		s := of[0]
		if len(of) > 1 {
			s = &jsonschema.Schema{AnyOf: of}
			var lines []string
			for _, o := range of {
				lines = append(lines, o.Description)
			}
			s.Description = strings.Join(lines, "\n")
		}
		if !slices.ContainsFunc(ps, func(p prop) bool { return p.name == name }) {
			ps = append(ps, prop{name, oneOrMore(s)})
		}
	}
	return section("The factors and their levels. Their cross product is measured.", ps)
}

// workloadsSchema describes each kind's parameters under the kind that the
// entry names, or, where it names none, under its own name.
func workloadsSchema(cat Catalogue) *jsonschema.Schema {
	names := sortedKeys(cat.Workloads)
	entry := orNull(&jsonschema.Schema{Description: "A workload: its kind, parameters and responses. A list makes a parameter a factor of this workload.", Type: "object"})
	entry.Properties = map[string]*jsonschema.Schema{"kind": words(names)}
	s := &jsonschema.Schema{Description: "The workloads, by the name that the report shows.", Type: "object", MinProperties: new(1),
		Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: entry, PropertyOrder: names}
	for _, k := range names {
		// Required is what makes an entry without a kind escape the condition.
		entry.AllOf = append(entry.AllOf, &jsonschema.Schema{
			If:   &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"kind": words([]string{k})}, Required: []string{"kind"}},
			Then: workloadSchema(k, cat.Workloads[k]),
		})
	}
	for _, k := range names {
		own := entry.CloneSchemas()
		own.AllOf = append(own.AllOf, &jsonschema.Schema{
			If:   &jsonschema.Schema{Type: "object", Not: &jsonschema.Schema{Required: []string{"kind"}}},
			Then: workloadSchema(k, cat.Workloads[k]),
		})
		s.Properties[k] = own
	}
	entry.Required = []string{"kind"}
	entry.Types, entry.Type = nil, "object"
	return s
}

func workloadSchema(kind string, info WorkloadInfo) *jsonschema.Schema {
	ps := props{{"kind", words([]string{kind})}, {"responses", oneOrMore(text("The compared responses; the first decides when to stop. Default: all that have a better direction."))},
		{"turns", turnsSchema("Turns in which the cells of a block of this workload are measured. Default: the study's.")}}
	for _, p := range info.Params {
		ps = append(ps, prop{p.Name, oneOrMore(value(p))})
	}
	return object("", ps)
}

// sentinelSchema describes the parameters of the kind that is named, or of the
// usual one.
func sentinelSchema(cat Catalogue) *jsonschema.Schema {
	names := sortedKeys(cat.Workloads)
	own := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"kind": words(names)}}
	for _, k := range names {
		ps := props{{"kind", words([]string{k})},
			{"every", whole("Blocks from one to the next.", 1)},
			{"share", fraction("The share of the measuring time that all sentinel trials may take, at most a half. Default: 3%.")}}
		for _, p := range cat.Workloads[k].Params {
			ps = append(ps, prop{p.Name, value(p)})
		}
		is := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"kind": words([]string{k})}, Required: []string{"kind"}}
		if k == sentinelKind {
			is = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{is, {Not: &jsonschema.Schema{Required: []string{"kind"}}}}}
		}
		own.AllOf = append(own.AllOf, &jsonschema.Schema{If: is, Then: object("", ps)})
	}
	return &jsonschema.Schema{Description: "What detects changes of the machine: off, on, or the workload that does it. Default: on, unless all sandboxes are fake.",
		AnyOf: []*jsonschema.Schema{words([]string{"on", "off"}), own}}
}

func picksSchema(help string) *jsonschema.Schema {
	return &jsonschema.Schema{Description: help, Types: []string{"array", "null"}, Items: &jsonschema.Schema{
		Type: "object", MinProperties: new(1), AdditionalProperties: oneOrMore(scalar("A level, or several.")),
	}}
}
