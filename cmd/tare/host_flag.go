package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tare/internal/rootless"
	"tare/report/terminal"
	"tare/site"
	"tare/site/remote"
	"tare/ssh"
	"tare/study"
)

const hostHelp = "another machine to measure on: ssh://USER@MACHINE[:PORT] (default this one)"

// hostFlag adds --host to a verb.
func hostFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "host", "", hostHelp)
	_ = cmd.RegisterFlagCompletionFunc("host", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"ssh://"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
}

// machine connects to another machine as a site.
func (a *app) machine(ctx context.Context, url string) (*remote.Machine, error) {
	at, err := ssh.Parse(url)
	if err != nil {
		return nil, coded(exitUsage, "--host: %w", err)
	}
	m, err := ssh.Dial(ctx, at, ssh.Setup{
		Takes: expected,
		Say:   func(s string) { a.say("%s", s) },
		Heard: func(s string) { a.note("%s: %s", at, s) },
	})
	if errors.Is(err, site.ErrInterrupted) {
		return nil, coded(exitInterrupted, "interrupted before anything was measured")
	}
	if err != nil {
		return nil, err
	}
	if !m.Facts.Root {
		a.say("%s: %s", m, rootless.Limits)
	}
	return m, nil
}

// served is this host as the site of a tare on another machine, on standard input and output.
func served(ctx context.Context, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a lost connection must not end tare before its sandboxes
	a := newApp(io.Discard, io.Discard)
	a.enter = rootless.Enter
	a.sandboxes() // an ordinary user's starts again here
	fail := func(err error) int {
		fmt.Fprintln(stderr, terminal.Message(fmt.Sprintf("tare internal site: %v", err)))
		return exitFailed
	}
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	ssh.Tidy(self)
	home, err := os.Getwd() // where the connection begins
	if err != nil {
		return fail(err)
	}
	err = remote.Serve(ctx, os.Stdin, stdout, remote.Served{
		Facts: remote.Facts{Root: rootless.Root(), Home: home, KVM: provenKVM()},
		Site:  func(say io.Writer) site.Site { return newApp(say, say).host() },
		Parse: func(source []byte, overrides []string) (*study.Study, study.Catalogue, error) {
			cat, err := offered()
			if err != nil {
				return nil, cat, err
			}
			cat.Stored = true // the other tare has checked it
			st, err := study.Parse("study.yaml", source, cat, overrides)
			return st, cat, err
		},
	})
	if err != nil {
		return fail(err)
	}
	return exitOK
}
