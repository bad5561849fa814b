package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tare/plan"
	"tare/record"
	"tare/report/export"
	"tare/report/terminal"
	"tare/report/weigh"
	"tare/report/words"
	"tare/run"
	"tare/site"
	"tare/store"
	"tare/study"
	"tare/trial"
)

type weighFlags struct {
	in                                []string
	within, timeout                   string
	prepare, input, cwd, shell        string
	env, mounts, figures, jsonFigures []string
	format                            string
	cpus, cpuset, memory, image       string
	save, results                     string
	warmup                            int
	server, ready, load, http, cacert string
	rate, connections                 string
	network, ignore, insecure         bool
	writable                          bool
	host, on, loadImage               string
	cluster                           clusterFlags
	json, markdown, wait              bool
}

func (a *app) weighVerb() *cobra.Command {
	var f weighFlags
	cmd := &cobra.Command{
		Use:   "weigh [flags] -- COMMAND [ARGUMENT]...",
		Short: "Say what sandboxes cost your own program",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := valued(cmd.Flags()); err != nil {
				return err
			}
			return a.weigh(cmd.Context(), args, f)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows the first word is the command's own
	fl.SortFlags = false      // --help has them in this order
	fl.StringSliceVar(&f.in, "in", nil, "sandboxes, such as runc,runsc-systrap,vm (default all that work here)")
	budgetOrFor(fl, &f.within, "60s")
	fl.StringVar(&f.image, "image", "", "files of the sandbox: an image's name, its archive or a folder (default this host's files, read-only)")
	fl.BoolVar(&f.writable, "writable", false, "with --image: the program may write to these files; what it writes is lost with the sandbox")
	fl.BoolVar(&f.network, "network", false, "give the sandbox a network interface; it reaches nothing outside this host")
	fl.StringVar(&f.cpus, "cpus", "", "processor time that the command may use, in cores, such as 1.5")
	fl.StringVar(&f.memory, "memory", "", "memory that the sandbox may use, such as 512MiB")
	fl.StringVar(&f.cpuset, "cpuset", "", "processors of the sandbox, such as 0-1, or any; apart (default with --server) gives server and load their own cores")
	fl.StringVar(&f.cwd, "cwd", "", "working directory in the sandbox (default the present one; with --image that of the image)")
	fl.StringArrayVar(&f.env, "env", nil, "environment: NAME=VALUE, or NAME for its value here (repeatable)")
	fl.StringArrayVar(&f.mounts, "mount", nil, "directory of this host to write to, or with :ro to read: HOST[:GUEST][:ro] (repeatable)")
	fl.StringVar(&f.input, "input", "", "file that is standard input (default none)")
	fl.StringVar(&f.shell, "shell", "", "have /bin/sh run the command, or --shell=bash that shell")
	fl.Lookup("shell").NoOptDefVal = "true"
	fl.StringVar(&f.prepare, "prepare", "", "command before each run; it is not timed")
	fl.IntVar(&f.warmup, "warmup", -1, "runs before the timed ones of each turn (default 1 of a short command, else 0)")
	fl.Lookup("warmup").DefValue = "0" // the text says what the default is
	fl.StringVar(&f.timeout, "timeout", "", "a run that takes longer has failed (default 50 times as long as natively, but at least 10s and at most 1m)")
	fl.BoolVar(&f.ignore, "ignore-failure", false, "weigh a command that ends with another exit code than 0 all the same")
	fl.StringArrayVar(&f.figures, "figure", nil, "number in the output: NAME[UNIT,BETTER]=REGEX, such as 'rate[1/s]=GET: ([0-9.]+)' (repeatable)")
	fl.StringArrayVar(&f.jsonFigures, "figure-json", nil, "number in output that is JSON: NAME[UNIT,BETTER]=PATH (repeatable)")
	fl.StringVar(&f.format, "format", "", "what the command prints: gobench, jmh, pytest-benchmark, google-benchmark or fio-json")
	fl.StringVar(&f.server, "server", "", "weigh this server in place of a command")
	fl.StringVar(&f.ready, "ready", "", "with --server: it is ready at tcp:PORT, http:PORT/PATH or output:TEXT (with --http: when that answers)")
	fl.StringVar(&f.load, "load", "", "with --server: the command that loads it; {server} is its address")
	fl.StringVar(&f.loadImage, "load-image", "", "with --load: files that it sees, as for --image (default this host's files, read-only)")
	fl.StringVar(&f.http, "http", "", "with --server: what the built-in client asks for, PORT/PATH or a URL")
	fl.StringVar(&f.rate, "rate", "", "with --http: requests per second, even if answers are late (default as fast as answers come)")
	fl.StringVar(&f.connections, "connections", "", "with --http: connections at a time (default 10)")
	fl.StringVar(&f.cacert, "cacert", "", "with --http https://...: PEM file of the authority that signed the server's certificate (default those that this host trusts)")
	fl.BoolVar(&f.insecure, "insecure", false, "with --http https://...: do not check the server's certificate")
	fl.StringVarP(&f.results, "results", "o", "", "results folder, a new one (default one that the last line names)")
	fl.StringVar(&f.save, "save", "", "write the study that is run to this file")
	fl.BoolVar(&f.json, "json", false, "print the whole analysis as JSON, as report --json does")
	fl.BoolVar(&f.markdown, "markdown", false, "print a table for an issue")
	fl.BoolVar(&f.wait, "wait", false, waitAnywhere)
	hostFlag(cmd, &f.host)
	fl.StringVar(&f.on, "on", "", "k8s: weigh in pods of a Kubernetes cluster (default: this host)")
	f.cluster.add(fl)
	f.cluster.addApps(fl)
	f.cluster.addAtOnce(fl)
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	_ = cmd.RegisterFlagCompletionFunc("in", completeKinds)
	return cmd
}

// weigh runs the whole verb: 1. a first look natively says how long a run takes; 2. the study is
// made by that, and run as any other; 3. what it says is printed.
func (a *app) weigh(ctx context.Context, args []string, f weighFlags) error {
	within, err := duration("budget", f.within)
	if err != nil {
		return err
	}
	if err := f.places(); err != nil {
		return err
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	where, w, cat, leave, err := a.weighAt(ctx, args, &f)
	if err != nil {
		return err
	}
	defer leave()
	a.told.Store(&sync.Map{}) // the site opens twice
	defer a.told.Store(nil)
	t := a.newTries(ctx, f.json)
	first, err := a.firstLook(ctx, where, w, cat, f, t)
	if err := t.interrupted(err); err != nil {
		return err
	}
	text := w.study(w.paced(first, within))
	st, err := parsed(text, cat)
	if err != nil {
		return err
	}
	if f.save != "" {
		if err := replaceFile(f.save, func(out io.Writer) error { _, err := io.WriteString(out, text); return err }); err != nil {
			return err
		}
	}
	// The first look has let the host go: if another tare has taken it since, this one waits even
	// without --wait, because it has told the user that it begins.
	s, err := where.Open(ctx, site.Request{Study: st, Catalogue: cat, Wait: true, Trying: t.begin})
	if err == nil {
		defer s.Close()
	}
	if err := t.interrupted(err); err != nil {
		return err
	}
	a.told.Store(nil)
	skips := s.Preview().Skips
	if !f.json {
		a.tellMissing(w, skips, len(f.in) > 0)
	}
	if onlyBaselines(st, skips) {
		return coded(exitHost, "no sandbox works %s, so nothing can be weighed%s", w.at, w.doctor("; `tare doctor` there says what is missing"))
	}
	db, err := f.store(w, st, where.About(), s, time.Now())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := db.SetSkips(context.WithoutCancel(ctx), skips); err != nil {
		return err
	}
	return a.weighed(ctx, st, cat, s, db, f)
}

// firstLook runs each command natively and says how long the longest takes. A command that fails is
// told as a shell tells it, before anything is measured.
func (a *app) firstLook(ctx context.Context, where site.Site, w *weighing, cat study.Catalogue, f weighFlags, t *tries) (seen looked, err error) {
	native := *w
	native.sandboxes = w.sandboxes[:1]
	if _, err := parsed(w.study(w.pilot()), cat); err != nil { // with all sandboxes, for its mistakes
		return seen, err
	}
	st, err := parsed(native.study(w.pilot()), cat)
	if err != nil {
		return seen, err
	}
	st.Collect.Names = nil // the command's own figures will do; what is missing is told with the study
	s, err := where.Open(ctx, site.Request{Study: st, Catalogue: cat, Wait: f.wait, Trying: t.begin})
	if err != nil {
		return seen, err
	}
	defer s.Close()
	if skips := s.Preview().Skips; len(skips) > 0 {
		return seen, coded(exitHost, "%s", skips[0].Reason)
	}
	var kept firstTrials
	if err := (&run.Engine{Session: s, Store: &kept}).Run(ctx, plan.New(st, nil, run.Nodes(s))); err != nil {
		return seen, err
	}
	for _, tr := range kept {
		if tr.Failure != nil {
			return seen, coded(exitTrials, "%s", failedNatively(tr, cmp.Or(w.server, strings.Join(w.commands, "; ")), f))
		}
		wall, ok := tr.Sample("wall")
		if !ok { // of the built-in client
			wall, _ = tr.Sample("latency_p99")
		}
		seen.run = max(seen.run, time.Duration(wall*float64(time.Second)))
		beside := time.Duration(0)
		for _, p := range tr.Phases {
			if p.Name != trial.PhaseWarmup && p.Name != trial.PhaseRun {
				beside += p.Duration
			}
		}
		seen.beside = max(seen.beside, beside)
	}
	return seen, nil
}

// firstTrials keeps the trials of a first look.
type firstTrials []*record.Trial

// Append is of run.Store.
func (m *firstTrials) Append(_ context.Context, t *record.Trial, _ record.Evidence) error {
	*m = append(*m, t)
	return nil
}

// noRoot is what programs say that want another user.
var noRoot = regexp.MustCompile(`(?i)"?\broot\b"? execution .*not permitted|\b(not|cannot|can't|never) (be )?(run|started|executed|running) as root\b`)

// failedNatively says how a command fails where nothing isolates it.
func failedNatively(t *record.Trial, what string, f weighFlags) string {
	command, several := t.Cell.Get("command")
	if !several {
		command = what
	}
	how, said := weigh.Failure(t.Failure)
	if t.Failure.Kind == record.Unfit {
		s := flagOf(how, f)
		if several {
			s = command + ": " + s
		}
		return s + "; the last run printed" + printed(said)
	}
	s := fmt.Sprintf("%s: fails natively: %s", command, how)
	switch {
	case strings.Contains(said, "Read-only file system") && f.image != "":
		if !strings.Contains(s, "--writable") {
			s += "; the files of an image are read-only, so have it write to /tmp, or give --writable"
		}
	case strings.Contains(said, "Read-only file system") && !strings.Contains(s, "--mount DIR"):
		s += "; a command sees this host's files read-only: let it write to a directory with --mount DIR"
	case strings.Contains(how, "SIGKILL") && f.memory != "":
		s += "; it may have needed more than --memory " + f.memory
	case strings.HasPrefix(how, "server did not answer") && strings.Contains(how, "connection refused"):
		s += "; it must listen on the port of --ready or --http, and on all addresses (0.0.0.0), not on loopback alone"
	case strings.HasPrefix(how, "server answered wrongly") && strings.Contains(how, ", not 200"):
		s += "; in --http and --ready, write a path that it answers with status 200"
	case noRoot.MatchString(said):
		s += "; it runs as root here: put `setpriv --reuid USER --regid GROUP --clear-groups` before it"
	case strings.Contains(how, "cannot start /bin/sh") && f.image != "":
		s = fmt.Sprintf("%s: the image has no /bin/sh; leave --shell out, or name a shell that it has, such as --shell=bash", command)
	case strings.Contains(how, "exit code") && !strings.HasPrefix(how, "server "): // which must not end at all
		if said == "" {
			s += "; it has no terminal here, and no input without --input"
		}
		s += "; --ignore-failure weighs it all the same"
	}
	if said != "" {
		s += "\n" + said
	}
	return s
}

// flagOf names the flag in what is wrong with an output.
func flagOf(how string, f weighFlags) string {
	switch rest, is := strings.CutPrefix(how, "figure "); {
	case !is && f.format != "":
		return "--format " + f.format + ": " + how
	case is && slices.ContainsFunc(f.jsonFigures, func(text string) bool {
		name, _ := figure(text, "json:")
		return strings.HasPrefix(rest, name+":")
	}):
		return "--figure-json " + rest
	case is:
		return "--figure " + rest
	}
	return how
}

// printed is what a program printed, behind a word about it.
func printed(said string) string {
	switch {
	case said == "":
		return " nothing to standard output; with --shell and 2>&1, standard error counts too"
	case strings.Contains(said, "\n"):
		return ":\n" + said
	}
	return ": " + said
}

// tellMissing says in a line what does not work here: why, of what the user named.
func (a *app) tellMissing(w *weighing, skips []record.Skip, named bool) {
	if named || w.cluster {
		a.printSkips(skips)
		return
	}
	var missing, without []string
	for _, s := range skips {
		if k, ok := s.Cell.Get(study.FactorSandbox); ok && !slices.Contains(missing, k) {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		without = append(without, fmt.Sprintf("%s: not possible %s, and `tare doctor` there says why", words.List(missing), w.at))
	}
	if len(w.unproven) > 0 {
		without = append(without, fmt.Sprintf("%s: no virtual machine has started with KVM %s since the last boot; `tare doctor` there tries it, --in %s weighs it all the same", words.List(w.unproven), w.at, w.unproven[0]))
	}
	if len(without) > 0 {
		a.say("without %s", strings.Join(without, "; without "))
	}
}

// store makes the results folder.
func (f *weighFlags) store(w *weighing, st *study.Study, at site.About, s site.Session, now time.Time) (*store.Store, error) {
	dir := f.results
	if dir == "" {
		var err error
		if dir, err = newWeighFolder(w.label, now); err != nil {
			return nil, err
		}
	}
	return openStore(dir, "weigh.yaml", st, at, s.Nodes())
}

// weighed runs the trials and prints what they say.
func (a *app) weighed(ctx context.Context, st *study.Study, cat study.Catalogue, s site.Session, db *store.Store, f weighFlags) error {
	skips := s.Preview().Skips
	p := plan.New(st, skips, run.Nodes(s))
	a.sayShort(st, s)
	live := newLive(a, st, cat, skips, once(s.Expected), f.json)
	live.atOnce = s.Preview().AtOnce
	runErr := a.follow(ctx, run.Engine{Session: s, Store: db, Observe: live.observe}, p, nil)
	live.close()
	lost := errors.Is(runErr, run.ErrNoNode)
	if runErr != nil && !lost && !errors.Is(runErr, site.ErrInterrupted) {
		return runErr
	}
	x, err := results{db}.read(context.WithoutCancel(ctx), figures)
	if err != nil {
		return err
	}
	rows := weigh.Of(x.result)
	beside := append(weigh.Beside(plan.Rule(st), rows, x.trials), weigh.Notes(x.result, x.hosts())...)
	switch {
	case f.json:
		err = export.JSON(a.stdout, x.result, x.hosts())
	case f.markdown:
		a.lines(append(weigh.Markdown(rows), weigh.MarkdownNotes(beside)...))
	default:
		a.lines(weigh.Text(rows, weigh.Starts(rows, x.trials), beside, a.textOptions("").Ink))
		if runErr == nil && slices.ContainsFunc(rows, func(r weigh.Row) bool { return r.Wide() }) {
			a.line("%s", wantsTime(st.Budget.Time, x.trials))
		}
		a.line("results: %s (`tare report` shows all of them)", db.Dir())
	}
	switch {
	case err != nil:
		return err
	case lost:
		return coded(exitHost, "%s; what was measured before is in %s", x.trials[len(x.trials)-1].Failure.Reason, db.Dir())
	case runErr != nil:
		return coded(exitInterrupted, "interrupted: this is what is known so far")
	}
	if n := failedForGood(st, p, x.trials); n > 0 {
		return coded(exitTrials, "%s failed", words.Count(n, "sandbox"))
	}
	return nil
}

// lines prints lines that are laid out.
func (a *app) lines(list []string) {
	for _, l := range list {
		fmt.Fprintln(a.stdout, l)
	}
}

// parsed checks the study. Its mistakes are the command line's: they have no place.
func parsed(text string, cat study.Catalogue) (*study.Study, error) {
	st, err := study.Parse("weigh.yaml", []byte(text), cat, nil)
	var bad study.Errors
	if !errors.As(err, &bad) {
		return st, err
	}
	var said []string
	for _, e := range bad {
		said = append(said, byFlag(e.What, e.Instead))
	}
	return nil, coded(exitUsage, "%s", terminal.Lines(said))
}
