package main

import (
	"github.com/spf13/cobra"

	"tare/study"
)

func (a *app) schemaVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the study file",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			cat, err := offered()
			if err != nil {
				return err
			}
			b, err := study.Schema(cat)
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(append(b, '\n'))
			return err
		},
	}
}
