package study

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"tare/ordered"
	"tare/param"
	"tare/record"
)

// Table asks for a summary table: one response over the rest of the factors, as
// docs/summary-table.md describes. Its Rows begin with the compared factor, and
// neither Rows nor Columns is a factor that no cell has.
type Table struct {
	Name     string
	Response string
	Rows     []string // factors
	Columns  string   // a factor that all cells of a stratum share; "" for one column
	Where    []Factor // only cells with one of these levels; a cell without the factor counts
}

// Holds reports whether the table is about a cell, by its Where.
func (t *Table) Holds(cell record.Cell) bool { return holds(t.Where, cell) }

func holds(where []Factor, cell record.Cell) bool {
	for _, f := range where {
		if level, ok := cell.Get(f.Name); ok && !slices.Contains(f.Levels, level) {
			return false
		}
	}
	return true
}

// asked is a table while it is read, with the places of what is judged when the
// cells are there.
type asked struct {
	Table
	at, response, columns *yaml.Node
	rows                  []*yaml.Node // beside Table.Rows
}

// tables reads the section: names, and levels where there are any.
func (d *draft) tables(n *yaml.Node) {
	for _, p := range d.entries(d.mapping(n, "tables"), "tables") {
		t := asked{Table: Table{Name: p.key.Value}, at: p.key}
		if !namePattern.MatchString(t.Name) {
			d.bad(p.key, "write letters, digits, - and _, at most 63", "%q is not a name for a table", t.Name)
		}
		if hasKey(p.val, "figure") {
			d.figure(p)
			continue
		}
		before := len(d.errs) + d.extra
		// figure is for suggestions: an entry that has it is not a summary table.
		keys := d.keys(p.val, "table "+t.Name, "response", "workload", "rows", "columns", "where", "figure")
		t.Response, t.response = d.tableResponse(p, keys)
		rows, nodes, whole := d.factorNames(keys["rows"].val, "rows")
		t.Rows, t.rows = rows, nodes
		if t.Columns, t.columns = "", keys["columns"].val; t.columns != nil {
			names, nodes, ok := d.factorNames(t.columns, "columns")
			whole = whole && ok
			switch {
			case len(names) > 1:
				d.bad(nodes[1], "write columns: and one factor", "columns is more than one factor")
			case len(names) == 1:
				t.Columns = names[0]
			}
		}
		var ok bool
		t.Where, ok = d.tableWhere(keys)
		whole = whole && ok
		if len(d.errs)+d.extra == before && whole {
			d.asked = append(d.asked, t)
		}
	}
}

func hasKey(n *yaml.Node, key string) bool {
	if n == nil || n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

func (d *draft) tableResponse(p pair, keys map[string]pair) (name string, at *yaml.Node) {
	q, ok := keys["response"]
	if !ok {
		d.bad(p.key, "write response: and the name of a response of this study", "table %q has no response", p.key.Value)
	} else if name, ok = d.text(q.val, "response"); ok {
		at = q.val
	}
	return name, at
}

// tableWhere reads workload and where. It is false if a level does not exist, or no longer exists.
func (d *draft) tableWhere(keys map[string]pair) (out []Factor, whole bool) {
	where, whole := d.mapping(keys["where"].val, "where"), true
	if q, ok := keys["workload"]; ok {
		where = append(where, pair{&yaml.Node{Kind: yaml.ScalarNode, Value: FactorWorkload, Line: q.key.Line, Column: q.key.Column}, q.val})
	}
	for _, q := range where {
		c, ok := d.pickOne(q, d.loads, false)
		if slices.ContainsFunc(out, func(f Factor) bool { return f.Name == q.key.Value }) {
			d.bad(q.key, "remove one", "the levels of %s are given twice", q.key.Value)
		}
		if whole = whole && ok; ok {
			out = append(out, Factor{Name: d.factors[c.factor].name, Levels: c.levels})
		}
	}
	return out, whole
}

// factorNames reads names of factors of this study. Not all of them are there any
// more, under --set: then it is false.
func (d *draft) factorNames(n *yaml.Node, what string) (names []string, nodes []*yaml.Node, whole bool) {
	whole = true
	texts, at := d.words(n, what)
	for i, name := range texts {
		if _, ok := d.index[name]; !ok {
			if !d.relaxed || !slices.Contains(d.cat.factorNames(), name) {
				d.noFactor(at[i], name, d.inStudy())
			} else if what != "rows" { // a row less is a smaller table; a column less another one
				whole = false
			}
			continue
		}
		names, nodes = append(names, name), append(nodes, at[i])
	}
	return names, nodes, whole
}

// tablesOf judges the tables when it is known which factors are nested under the
// compared one, and which cells there are. Tables that --set left without a cell
// fall away.
func (d *draft) tablesOf() {
	for i := range d.asked {
		t := &d.asked[i]
		if len(t.Rows) == 0 {
			t.Rows = []string{d.study.Compare}
			for _, f := range d.factors {
				if f.treats && f.used && f.name != d.study.Compare && f.name != t.Columns {
					t.Rows = append(t.Rows, f.name)
				}
			}
		}
		if before := len(d.errs); d.tableFactors(t) &&
			d.tableCells(t.Name, t.Response, t.at, t.response, func(s *Stratum) bool { return t.Holds(s.Shared) }) && len(d.errs) == before {
			d.study.Tables = append(d.study.Tables, t.Table)
		}
	}
}

func (d *draft) tableFactors(t *asked) bool {
	if t.Rows[0] != d.study.Compare {
		at := t.at
		if len(t.rows) > 0 {
			at = t.rows[0]
		}
		rest := slices.DeleteFunc(slices.Clone(t.Rows), func(name string) bool { return name == d.study.Compare })
		d.bad(at, "write rows: ["+strings.Join(append([]string{d.study.Compare}, rest...), ", ")+"]", "the rows of table %q must begin with the compared factor %s", t.Name, d.study.Compare)
		return false
	}
	if t.Columns == "" {
		return true
	}
	switch f := d.factors[d.index[t.Columns]]; {
	case slices.Contains(t.Rows, t.Columns):
		d.bad(t.columns, "choose another factor", "%q is a factor of the rows already", t.Columns)
	case f.treats:
		d.bad(t.columns, "write it among the rows", "%q varies with %s, so the baseline has no such column", t.Columns, d.study.Compare)
	default:
		return true
	}
	return false
}

// tableCells is false for a table that is about no stratum.
func (d *draft) tableCells(name, response string, at, responseAt *yaml.Node, of func(*Stratum) bool) bool {
	var others []string
	some := false
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		if !of(s) {
			continue
		}
		some = true
		if slices.Contains(s.Responses, response) {
			return true
		}
		for _, r := range s.Responses {
			others = ordered.Add(others, r)
		}
	}
	switch {
	case d.relaxed:
	case !some:
		d.bad(at, "correct its workload and where", "table %q matches no cell of this study", name)
	default:
		d.bad(responseAt, param.Suggest(response, others), "no workload of table %q compares a response %q", name, response)
	}
	return false
}

func tablesSchema() *jsonschema.Schema {
	level := oneOrMore(scalar("A level, or several."))
	t := object("A summary table, or with the key figure a table of a figure of merit.", props{
		{"figure", pattern("A figure of merit: value, best of FACTOR, gain of FACTOR, ratio of FACTOR, difference of FACTOR, fewest 90% of FACTOR, or LEVEL over LEVEL.", `^\s*(value|(best|gain|ratio|difference|fewest)(\s+[0-9.]+\s*%?)?\s+of\s+\S+|\S+\s+over\s+\S+)\s*$`)},
		{"response", text("A response that the workloads compare.")},
		{"workload", oneOrMore(text("Workloads. Default: all that have the response."))},
		{"rows", oneOrMore(text("Factors whose levels are rows: the compared one, and others. Default: the compared one and those nested under it. With figure, any factors. Default: all that vary and have no other place."))},
		{"columns", oneOrMore(text("The factor whose levels are columns; with figure, several. Default: one column."))},
		{"total", text("With figure: the last factor of the rows. The table gets rows of the arithmetic means over its levels.")},
		{"where", mapOf("Only cells with these levels: factor and levels.", level)},
	})
	t.Required = []string{"response"}
	return mapOf("Tables of the report, by name: geometric means over all factors that are not named, or figures of merit.", t)
}
