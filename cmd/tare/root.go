package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/cluster/objects"
	"tare/param"
	"tare/report/terminal"
	"tare/report/words"
	"tare/study"
)

// app is what the verbs share.
type app struct {
	stdout, stderr *terminal.Writer                // the only way to a person; nothing else may print
	args           []string                        // of the command line
	private        private                         // unpacked bundles
	enter          func(string)                    // goes on in a user namespace, with this directory for runs; nil in tests
	logs           *logs                           // messages as JSON; nil: as text
	told           atomic.Pointer[sync.Map]        // messages that are not said again; nil: all are
	left           atomic.Pointer[string]          // the command that removes what is on the cluster; nil: `tare clean`, "": nothing to clean up
	offers         func() (study.Catalogue, error) // what a study can be made of at a cluster; nil: what this host offers
	has            *objects.Cluster                // what the cluster has for its loads; nil: no cluster was asked
}

// newApp wraps the outputs in Writers, which escape what passes.
func newApp(stdout, stderr io.Writer) *app {
	return &app{stdout: terminal.New(stdout), stderr: terminal.New(stderr)}
}

// say prints something on standard error, apart from the verb's own output.
func (a *app) say(format string, args ...any) { a.note("tare: "+format, args...) }

// note is say without the program's name.
func (a *app) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if told := a.told.Load(); told != nil {
		if _, again := told.LoadOrStore(text, true); again {
			return
		}
	}
	if a.logs != nil {
		a.logs.message(text)
		return
	}
	fmt.Fprintln(a.stderr, terminal.Message(text))
}

// line prints a line of the verb's own output. Further lines of its data belong to it and
// are indented.
func (a *app) line(format string, args ...any) {
	fmt.Fprintln(a.stdout, terminal.Message(fmt.Sprintf(format, args...)))
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "tare weighs what isolation costs",
		Args:  cobra.ArbitraryArgs, // so that RunE can name the nearest verb
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var verbs []string
			for _, c := range cmd.Commands() {
				verbs = append(verbs, c.Name())
			}
			return coded(exitUsage, "there is no verb %q; %s", args[0], param.Suggest(args[0], verbs))
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return exclusive(cmd) },
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return coded(exitUsage, "%s; see `%s --help`", badFlag(err), cmd.CommandPath())
	})
	root.AddCommand(
		a.runVerb(), a.weighVerb(), a.initVerb(), a.planVerb(), a.takesBundles(a.reportVerb()), a.takesBundles(a.serveVerb()), a.compareVerb(),
		a.takesBundles(a.exportVerb()), a.takesBundles(a.plotVerb()), a.takesBundles(a.adviseVerb()), a.tuneVerb(), a.bundleVerb(), a.importVerb(), a.doctorVerb(), a.listVerb(), a.sizeVerb(), a.imageVerb(), a.rbacVerb(), a.cleanVerb(), a.schemaVerb(), a.versionVerb(),
	)
	for _, c := range root.Commands() {
		completeSite(c)
	}
	explain(root, "") // the name `completion` is cobra's own verb: bash, zsh, fish, powershell
	return root
}

// badFlag says what is wrong with the command line. pflag's own words for a value show errors of the package strconv.
func badFlag(err error) string {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	f, why := bad.GetFlag(), bad.Unwrap().Error()
	if n := (*strconv.NumError)(nil); errors.As(err, &n) {
		why = map[string]string{"bool": "write true or false", "int": "write a whole number"}[f.Value.Type()]
	}
	if f.Value.Type() == "stringToString" {
		why = "write NAME=REFERENCE, with an = between them"
	}
	return fmt.Sprintf("--%s %s: %s", f.Name, words.Shell(bad.GetValue()), cmp.Or(why, "write a number"))
}

// exclusive refuses flags that exclude each other, before cobra does in longer words.
func exclusive(cmd *cobra.Command) error {
	err := cmd.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	said := err.Error()
	if m := regexp.MustCompile(`\[([^\]]*)\] were all set$`).FindStringSubmatch(said); m != nil {
		said = words.List(strings.Fields("--"+strings.ReplaceAll(m[1], " ", " --"))) + " exclude each other"
	}
	return coded(exitUsage, "%s; see `%s --help`", said, cmd.CommandPath())
}

// exactly is cobra.ExactArgs with an exit code and the next step.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return coded(exitUsage, "%s takes %s; see `%s --help`", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}
