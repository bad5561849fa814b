package csv

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/imports"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Roles of columns that are not factors.
const (
	roleResponse = "response"
	roleValue    = "value"
	roleUnit     = "unit"
	roleTrial    = "trial"
	roleBlock    = "block"
	roleTime     = "time"
	roleTimeUnit = "time-unit"
	roleLabels   = "labels"
	roleKind     = "kind"
)

// Columns that tare's own exports have, under these names. They need no mapping, so that nobody
// forgets them.
const (
	columnAccelerator = "accelerator" // of `tare export`: kvm, tcg, model; several are joined by +
	columnModelled    = "modelled"    // of `tare report --csv`: true or false
)

func roles() []string {
	return []string{study.FactorWorkload, roleResponse, roleValue, roleUnit, roleTrial, roleBlock, roleTime, roleTimeUnit, roleLabels, roleKind}
}

// Mapping describes the columns of a file. Columns maps a role or a factor's name to a column;
// Constants gives one text for the whole file instead.
type Mapping struct {
	Study     string                   `yaml:"study"`
	Compare   string                   `yaml:"compare"`
	Baseline  string                   `yaml:"baseline"`
	Columns   map[string]string        `yaml:"columns"`
	Constants map[string]string        `yaml:"constants"`
	Better    map[string]record.Better `yaml:"better"`    // of a response
	Operation map[string]string        `yaml:"operation"` // of a response: what it counts or times
	Tables    yaml.Node                `yaml:"tables"`    // of the report, as in a study file
	file      string                   // that has the tables
	order     []string                 // factors, as they were written
}

// ParseMapping reads a mapping file. Errors name file and line.
func ParseMapping(file string, text []byte) (Mapping, error) {
	var m Mapping
	if err := imports.DecodeMapping(file, text, &m, "study, compare, baseline, columns, constants, better, operation and tables"); err != nil {
		return m, err
	}
	var doc struct {
		Columns yaml.Node `yaml:"columns"`
	}
	if err := yaml.Unmarshal(text, &doc); err == nil {
		for i := 0; i+1 < len(doc.Columns.Content); i += 2 {
			m.note(doc.Columns.Content[i].Value)
		}
	}
	m.file = file
	return m, nil
}

// note keeps the order of factors.
func (m *Mapping) note(name string) {
	if name != study.FactorSandbox && !slices.Contains(roles(), name) && !slices.Contains(m.order, name) {
		m.order = append(m.order, name)
	}
}

// Column adds "ROLE=COLUMN", or "FACTOR=COLUMN".
func (m *Mapping) Column(pair string) error {
	k, ok := add(&m.Columns, pair)
	if !ok || m.Columns[k] == "" {
		return fmt.Errorf("cannot read the mapping %q; write ROLE=COLUMN or FACTOR=COLUMN, with one of the roles %s", pair, strings.Join(roles(), ", "))
	}
	m.note(k)
	return nil
}

// Constant adds "ROLE=TEXT", or "FACTOR=LEVEL".
func (m *Mapping) Constant(pair string) error {
	if k, ok := add(&m.Constants, pair); !ok || m.Constants[k] == "" {
		return fmt.Errorf("cannot read the constant %q; write ROLE=TEXT or FACTOR=LEVEL", pair)
	}
	return nil
}

// Direction adds "RESPONSE=higher", lower or neither.
func (m *Mapping) Direction(pair string) error {
	if _, ok := add(&m.Better, pair); !ok {
		return fmt.Errorf("cannot read the direction %q; write RESPONSE=higher, lower or neither", pair)
	}
	return nil
}

// add puts "KEY=VALUE" into a map.
func add[V ~string](to *map[string]V, pair string) (key string, ok bool) {
	k, v, ok := strings.Cut(pair, "=")
	if *to == nil {
		*to = map[string]V{}
	}
	(*to)[k] = V(v)
	return k, ok && k != ""
}

// check finds what the mapping lacks.
func (m *Mapping) check() error {
	for _, k := range slices.Sorted(maps.Keys(m.Constants)) {
		m.note(k)
		if _, both := m.Columns[k]; both {
			return fmt.Errorf("%s is a column and a constant; give it once", k)
		}
	}
	for _, f := range m.order {
		if err := imports.CheckFactor(f); err != nil {
			return err
		}
	}
	if m.Columns[roleValue] == "" {
		return fmt.Errorf("no column is the value; %swrite value=COLUMN", m.typo(roleValue))
	}
	for _, role := range []string{roleResponse, roleUnit} {
		if m.Columns[role] == "" && m.Constants[role] == "" {
			return fmt.Errorf("the %s is missing; %sname its column with %s=COLUMN, or give it for the whole file as a constant", role, m.typo(role), role)
		}
	}
	for r, b := range m.Better {
		if b != record.Higher && b != record.Lower && b != record.Neither {
			return fmt.Errorf("%s: unknown direction %q; write higher, lower or neither", r, b)
		}
	}
	return nil
}

// typo names the factor that may be a missing role, misspelt: any other word names a factor.
func (m *Mapping) typo(role string) string {
	for _, f := range m.order {
		if hint := param.Suggest(f, []string{role}); strings.HasPrefix(hint, "did you mean") {
			return fmt.Sprintf("%q names a factor, %s ", f, hint)
		}
	}
	return ""
}

// find returns the number of the column of every role and factor.
func (m *Mapping) find(file string, header []string) (map[string]int, error) {
	at := map[string]int{}
	for _, k := range slices.Sorted(maps.Keys(m.Columns)) {
		i := slices.Index(header, m.Columns[k])
		if i < 0 && len(header) == 1 && strings.ContainsAny(header[0], ";\t") {
			return nil, fmt.Errorf("%s:1:1: the columns are not separated by commas; write commas, and decimal points in numbers", file)
		} else if i < 0 {
			return nil, fmt.Errorf("%s:1:1: there is no column %q for %s; %s", file, m.Columns[k], k, imports.Clean(param.Suggest(m.Columns[k], header)))
		}
		at[k] = i
	}
	return at, nil
}
