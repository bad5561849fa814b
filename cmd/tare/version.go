package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"tare/report/terminal"
)

// version is set by the linker (see the Makefile); without it the module's
// build information speaks.
var version = ""

func versionText() string {
	if version != "" {
		return version
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "unknown"
}

func (a *app) versionVerb() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(map[string]string{
					"version": versionText(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			a.line("tare %s %s %s/%s", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printJSON(v any) error {
	enc := terminal.JSON(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
