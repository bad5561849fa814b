// Command truth simulates studies whose truth is known and prints, beside what the program
// promises, what it achieves:
//
//	go run ./scripts/truth [-long] [-only REGEXP] [-seed N] [-markdown]
//	go run ./scripts/truth -extract FOLDER...
//	go run ./scripts/truth -economy [-data FOLDER] [-plot FILE]
//	go run ./scripts/truth -reduce FILE -data FOLDER
//
// The data path: 1. a design is written as a study file and read by package study; 2. the
// scatter of its cells is drawn from components.csv, which -extract made from real results; 3. a
// machine gives each trial a value at its place in the order of execution; 4. packages plan
// and analyse run the study to its end, as the program does; 5. the result is compared with the
// truth, and the sections print tables of nominal and achieved figures.
//
// Nothing here computes an interval, a test or a moment in the way that the analysis does: the
// two share no code, so that a mistake cannot hide in both.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// defaultSeed is used where the user gives none, so that two runs print the same table.
const defaultSeed = 20261122

// options are what the user asked for.
type options struct {
	long     bool
	seed     uint64
	only     *regexp.Regexp
	workers  int
	markdown bool
	root     string  // of the module, for the shipped studies
	scale    float64 // studies of each case, as a multiple of the usual number
	curve    string  // file for the reliability curve of causes; "": none
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := options{root: "."}
	f := flag.NewFlagSet("truth", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.long, "long", false, "simulate every design on every machine, for hours (default: a short form of minutes)")
	short := f.Bool("short", false, "simulate the short form; this is the default")
	f.Uint64Var(&o.seed, "seed", defaultSeed, "the `number` that the simulated studies follow from")
	only := f.String("only", "", "run the cases whose \"SECTION DESIGN, RULE, MACHINE\" this `regexp` matches; with -economy, its parts measured, studies, tunes, cells, cells2 and pairs")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many studies to simulate at a time; the results do not depend on it")
	f.BoolVar(&o.markdown, "markdown", false, "print the tables as Markdown")
	f.Float64Var(&o.scale, "scale", 1, "simulate this many `times` the usual number of studies")
	f.StringVar(&o.curve, "curve", "", "write the reliability curve of the causes to this `file`, for scripts/figures")
	extract := f.Bool("extract", false, "print the variance components of the results folders in the arguments, and simulate nothing")
	saving := f.Bool("economy", false, "print what stopping rules and searches save, and what they miss, instead")
	data := f.String("data", "", "with -economy: replay the readings of this results `folder`, or of a file that -reduce wrote")
	plot := f.String("plot", "", "with -economy: write the points of its figure to this `file`, for scripts/figures")
	reduced := f.String("reduce", "", "write the first responses of the folder in -data to this `file` (CSV, zstd), and simulate nothing")
	if err := f.Parse(args); err != nil {
		return 2
	}
	var err error
	switch {
	case *extract:
		err = extractAll(ctx, stdout, f.Args())
	case *short && o.long:
		err = fmt.Errorf("-short and -long exclude each other; give one of them")
	case *reduced != "":
		err = reduceTo(ctx, *data, *reduced)
	case f.NArg() > 0:
		err = fmt.Errorf("cannot use the argument %q: only -extract takes folders", f.Arg(0))
	case o.workers < 1 || !(o.scale > 0):
		err = fmt.Errorf("-workers and -scale must be positive")
	case *saving:
		if o.only, err = regexp.Compile(*only); err != nil {
			break
		}
		err = economy(ctx, o, *data, *plot, stdout, stderr)
	default:
		if o.only, err = regexp.Compile(*only); err == nil {
			var outside int
			if outside, err = simulate(ctx, o, stdout, stderr); err == nil && outside > 0 {
				fmt.Fprintf(stderr, "truth: %d figures are outside the band that is promised, by more than chance explains; they are marked !\n", outside)
				return 1
			}
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "truth:", err)
		return 2
	}
	return 0
}

// simulate runs all sections and returns the number of promised figures that are outside
// their band by more than chance explains.
func simulate(ctx context.Context, o options, out, progress io.Writer) (outside int, err error) {
	form := "short"
	if o.long {
		form = "long"
	}
	fmt.Fprintf(out, "%s form, seed %d\n", form, o.seed)
	l, err := newLab(o, progress)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	var all []figure
	for _, s := range sections() {
		rows, err := s.run(ctx, l, out)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, rows...)
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("-only %q matches no case; run without it to see their names", o.only)
	}
	marked := 0
	for _, f := range all {
		if f.outside() {
			marked++
			if f.promised {
				outside++
			}
		}
	}
	fmt.Fprintf(out, "\n%d figures, %d outside their band, of those %d promised; %d studies of %d trials in all\n", len(all), marked, outside, l.studies, l.trials)
	fmt.Fprintf(progress, "truth: %s\n", time.Since(begun).Round(time.Second))
	return outside, nil
}

// section prints one table, or several that belong together, and returns the figures in them.
type section struct {
	name string
	run  func(context.Context, *lab, io.Writer) ([]figure, error)
}

// sections is what truth simulates, in the order in which it prints.
func sections() []section {
	return []section{
		{"rows", rowsSection},
		{"looks", looksSection},
		{"known", knownSection},
		{"spared", sparedSection},
		{"turns", turnsSection},
		{"comparisons", comparisonsSection},
		{"causes", causesSection},
	}
}
