package study

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

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
func (t *Table) Holds(cell record.Cell) bool {
	for _, f := range t.Where {
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

func tableKeys() []string { return []string{"response", "workload", "rows", "columns", "where"} }

// tables reads the section: names, and levels where there are any.
func (d *draft) tables(n *yaml.Node) {
	for _, p := range d.entries(d.mapping(n, "tables"), "tables") {
		t := asked{Table: Table{Name: p.key.Value}, at: p.key}
		if !namePattern.MatchString(t.Name) {
			d.bad(p.key, "write letters, digits, - and _, at most 63", "%q is not a name for a table", t.Name)
		}
		before := len(d.errs) + d.extra
		keys := d.keys(p.val, "table "+t.Name, tableKeys()...)
		if q, ok := keys["response"]; !ok {
			d.bad(p.key, "write response: and the name of a response of this study", "table %q has no response", t.Name)
		} else if t.Response, ok = d.text(q.val, "response"); ok {
			t.response = q.val
		}
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
		where := d.mapping(keys["where"].val, "where")
		if q, ok := keys["workload"]; ok {
			where = append(where, pair{&yaml.Node{Kind: yaml.ScalarNode, Value: FactorWorkload, Line: q.key.Line, Column: q.key.Column}, q.val})
		}
		for _, q := range where {
			c, ok := d.pickOne(q, d.loads, false)
			if slices.ContainsFunc(t.Where, func(f Factor) bool { return f.Name == q.key.Value }) {
				d.bad(q.key, "remove one", "the levels of %s are given twice", q.key.Value)
			}
			if whole = whole && ok; ok {
				t.Where = append(t.Where, Factor{Name: d.factors[c.factor].name, Levels: c.levels})
			}
		}
		if len(d.errs)+d.extra == before && whole {
			d.asked = append(d.asked, t)
		}
	}
}

// factorNames reads names of factors of this study. Not all of them are there any
// more, under --set: then it is false.
func (d *draft) factorNames(n *yaml.Node, what string) (names []string, nodes []*yaml.Node, whole bool) {
	whole = true
	texts, at := d.words(n, what)
	for i, name := range texts {
		if _, ok := d.index[name]; !ok {
			if !d.relaxed || !slices.Contains(d.cat.factorNames(), name) {
				d.bad(at[i], param.Suggest(name, d.inStudy()), "%q is not a factor of this study", name)
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
		if before := len(d.errs); d.tableFactors(t) && d.tableCells(t) && len(d.errs) == before {
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
func (d *draft) tableCells(t *asked) bool {
	var others []string
	some := false
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		if !t.Holds(s.Shared) {
			continue
		}
		some = true
		if slices.Contains(s.Responses, t.Response) {
			return true
		}
		for _, name := range s.Responses {
			if !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	switch {
	case d.relaxed:
	case !some:
		d.bad(t.at, "correct its workload and where", "table %q matches no cell of this study", t.Name)
	default:
		d.bad(t.response, param.Suggest(t.Response, others), "no workload of table %q compares a response %q", t.Name, t.Response)
	}
	return false
}

func tablesSchema() *jsonschema.Schema {
	level := oneOrMore(scalar("A level, or several."))
	t := object("A summary table.", props{
		{"response", text("A response that the workloads compare.")},
		{"workload", oneOrMore(text("Workloads. Default: all that have the response."))},
		{"rows", oneOrMore(text("Factors whose levels are rows: the compared one, and others. Default: the compared one and those nested under it."))},
		{"columns", text("The factor whose levels are columns. Default: one column.")},
		{"where", mapOf("Only cells with these levels: factor and levels.", level)},
	})
	t.Required = []string{"response"}
	return mapOf("Summary tables of the report, by name: geometric means over all factors that are not named.", t)
}
