package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	collectall "tare/collect/all"
	"tare/param"
	"tare/record"
	workloadall "tare/workload/all"
)

// listed is one workload, sandbox or collector as `tare list --json` prints it.
type listed struct {
	Name      string            `json:"name"`
	About     string            `json:"about"`
	Params    []param.Param     `json:"parameters,omitempty"`
	Responses []record.Response `json:"responses,omitempty"` // with default parameters
	Series    []record.Response `json:"series,omitempty"`
}

func (a *app) listVerb() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:       "list [workloads|sandboxes|collectors]",
		Short:     "List workloads, sandboxes and collectors with their parameters",
		ValidArgs: []string{"workloads", "sandboxes", "collectors"},
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := everything()
			if err != nil {
				return err
			}
			names := []string{"workloads", "sandboxes", "collectors"}
			if len(args) == 1 && all[args[0]] != nil {
				names = args
			} else if len(args) > 0 {
				return coded(exitUsage, "unknown list %q; %s", args[0], param.Suggest(args[0], names))
			}
			if asJSON {
				out := map[string][]listed{}
				for _, n := range names {
					out[n] = all[n]
				}
				return a.printJSON(out)
			}
			for _, n := range names {
				printList(a.stdout, n, all[n])
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func everything() (map[string][]listed, error) {
	out := map[string][]listed{}
	for _, w := range workloadall.Workloads() {
		v, err := param.Fill(w.Params(), nil)
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", w.Name(), err)
		}
		out["workloads"] = append(out["workloads"], listed{Name: w.Name(), About: w.About(), Params: w.Params(), Responses: w.Responses(v)})
	}
	ks, names, err := kinds("", nil)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		out["sandboxes"] = append(out["sandboxes"], listed{Name: n, About: ks[n].About(), Params: ks[n].Params()})
	}
	for _, c := range append(collectall.Collectors(), collectall.Counting()) {
		out["collectors"] = append(out["collectors"], listed{Name: c.Name(), About: c.About(), Series: c.Series()})
	}
	return out, nil
}

func printList(w io.Writer, title string, items []listed) {
	fmt.Fprintf(w, "%s\n", title)
	for _, it := range items {
		fmt.Fprintf(w, "\n  %s\n    %s\n", it.Name, it.About)
		t := table.NewWriter()
		t.SetStyle(table.StyleLight)
		t.Style().Options = table.OptionsNoBordersAndSeparators
		for _, p := range it.Params {
			t.AppendRow(table.Row{"     ", p.Name, p.Type, "default " + orNone(p.Default), p.Help})
		}
		for _, r := range it.Responses {
			t.AppendRow(table.Row{"     ", "-> " + r.Name, r.Unit, string(r.Better) + " is better", r.Help})
		}
		for _, s := range it.Series {
			t.AppendRow(table.Row{"     ", "-> " + s.Name, s.Unit, "", s.Help})
		}
		if t.Length() > 0 {
			for line := range strings.SplitSeq(t.Render(), "\n") {
				fmt.Fprintln(w, strings.TrimRight(line, " "))
			}
		}
	}
	fmt.Fprintln(w)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
