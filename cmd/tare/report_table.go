package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/analyse/merit"
	tables "tare/analyse/summary" // tare serve has a type of that name
	"tare/report/export"
	"tare/report/text"
	"tare/study"
)

// tableNames are the tables that a study asks for.
func tableNames(st *study.Study) (out []string) {
	for i := range st.Tables {
		out = append(out, st.Tables[i].Name)
	}
	for i := range st.Figures {
		out = append(out, st.Figures[i].Name)
	}
	return out
}

// completeTables completes --table.
func (a *app) completeTables() cobra.CompletionFunc {
	return a.completions(func(st *study.Study, _ []string, _ string) []string { return tableNames(st) })
}

// writeTables prints the tables that --table names, in the study's order, and nothing else.
func (a *app) writeTables(x *analysed, f *reportFlags, opt text.Options) error {
	for _, name := range f.named {
		switch has := tableNames(x.study); {
		case len(has) == 0:
			return coded(exitUsage, "--table %s: the study asks for no tables; a study has them in its section tables", name)
		case !slices.Contains(has, name):
			return coded(exitUsage, "--table %s: the study has no such table; it has %s", name, strings.Join(has, ", "))
		}
	}
	some := *x.result
	some.Tables = slices.DeleteFunc(slices.Clone(some.Tables), func(t tables.Table) bool { return !slices.Contains(f.named, t.Name) })
	some.Figures = slices.DeleteFunc(slices.Clone(some.Figures), func(t merit.Table) bool { return !slices.Contains(f.named, t.Name) })
	switch {
	case f.json:
		return export.TablesJSON(a.stdout, &some)
	case f.csv:
		return export.TablesCSV(a.stdout, &some)
	case f.markdown:
		return text.WriteTablesMarkdown(a.stdout, &some)
	}
	return text.WriteTables(a.stdout, &some, opt)
}
