package main

import (
	"errors"
	"fmt"
	"io"

	"tare/host/image"
	"tare/report/terminal"
	"tare/run"
	"tare/site"
	"tare/site/claim"
	"tare/study"
)

// Exit codes. This is the table that docs/exit-codes.md shows.
const (
	exitOK          = 0   // done
	exitFailed      = 1   // tare itself failed: its store, its directories
	exitUsage       = 2   // bad flags, arguments or study file; nothing was started
	exitHost        = 3   // this host cannot do what was asked
	exitTrials      = 4   // the study ended, but some cells failed for good
	exitHeld        = 5   // another tare holds the host, or another study the nodes of the cluster
	exitGate        = 6   // a gate of `tare compare` is broken
	exitUnjudged    = 7   // `tare compare` cannot judge: a gate needs more blocks, or two results are one
	exitInterrupted = 130 // ended by Ctrl-C; what was finished is kept
)

// codedError is an error that knows its exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func coded(code int, format string, args ...any) error {
	return &codedError{code, fmt.Errorf(format, args...)}
}

// leftBehind is the error of a verb that is done but could not remove what it made on a cluster. The reasons are printed already.
func (a *app) leftBehind() error {
	if command := a.left.Load(); command != nil && *command != "" {
		return coded(exitHost, "a part of the study is still in the cluster; remove it with `%s`", *command)
	}
	return nil
}

// exitCode prints an error as a user should see it and chooses the exit code.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	var (
		c      *codedError
		bad    study.Errors
		held   *claim.HeldError
		unable *site.UnableError
		flags  *site.FlagsError
		prefix = "tare: "
	)
	switch {
	case errors.As(err, &c):
		code = c.code
	case errors.As(err, &flags) || errors.Is(err, image.ErrAbsent) || errors.Is(err, image.ErrReference):
		code = exitUsage
	case errors.As(err, &held):
		code = exitHeld
	case errors.As(err, &unable) || errors.Is(err, run.ErrNoNode):
		code = exitHost
	case errors.As(err, &bad):
		code, prefix = exitUsage, "" // file:line:column must begin the line
	case errors.Is(err, site.ErrInterrupted):
		code = exitInterrupted
	}
	switch msg := err.Error(); {
	case len(bad) > 0 && msg == bad.Error(): // each line is a separate message
		list := make([]string, len(bad))
		for i, e := range bad {
			list[i] = prefix + e.Error()
		}
		fmt.Fprintln(stderr, terminal.Lines(list))
	case msg != "":
		fmt.Fprintln(stderr, terminal.Message(prefix+msg))
	}
	return code
}
