package main

import (
	"errors"

	"github.com/spf13/pflag"

	"tare/param"
)

// budgetFlag adds --budget, which is short for --set budget.time=. It goes by way of --set, whose first value replaces what
// its variable has.
func budgetFlag(fl *pflag.FlagSet) {
	fl.Func("budget", "the most time to measure, a `duration` such as 30m (default the study's); short for --set budget.time=", func(text string) error {
		d, err := param.ParseDuration(text)
		switch {
		case err != nil:
			return err //nolint:wrapcheck // the flag's name is added
		case d <= 0:
			return errors.New("it must be more than 0")
		}
		return fl.Set("set", "budget.time="+d.String()) // as tare tune has always stored it, so that its folders go on
	})
}

// budgetOrFor adds --budget to a verb that makes its study. --for is what it was called before.
func budgetOrFor(fl *pflag.FlagSet, within *string, preset string) {
	fl.StringVar(within, "budget", preset, "the most time to measure; --for is the same")
	alias(fl, "for", "budget")
}

// alias gives a flag a second name, which help does not show.
func alias(fl *pflag.FlagSet, second, first string) {
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == second {
			name = first
		}
		return pflag.NormalizedName(name)
	})
}
