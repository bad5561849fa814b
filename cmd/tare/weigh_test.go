package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
)

// weighingOf parses a command line as the verb does.
func weighingOf(t *testing.T, f weighFlags, args ...string) (*weighing, error) {
	t.Helper()
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	return f.weighing(args, []string{"process", "runc", "fake"}, cat, here())
}

// TestWeighStudy: what the user writes reaches the workload as it was written, whatever is in it.
func TestWeighStudy(t *testing.T) {
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	hostile := "a 'b' \"c\" # \\ {x}: [y], é"
	for name, c := range map[string]struct {
		f        weighFlags
		args     []string
		commands []string
		params   map[string]string
		label    string
		first    string // response, "" for wall
	}{
		"words":   {args: []string{"/usr/bin/gzip", "-k", "a file"}, commands: []string{"/usr/bin/gzip -k 'a file'"}, label: "gzip"},
		"quotes":  {args: []string{"sh", "-c", `x="it's $A"`}, commands: []string{`sh -c 'x="it'\''s $A"'`}, label: "sh"},
		"text":    {args: []string{"gzip -k f"}, commands: []string{"gzip -k f"}, label: "gzip"},
		"two":     {args: []string{"gzip f", "--", "zstd", "f"}, commands: []string{"gzip f", "zstd f"}, label: "commands"},
		"shell":   {f: weighFlags{shell: "bash -e"}, args: []string{"a | b"}, commands: []string{"a | b"}, params: map[string]string{"shell": "bash -e"}, label: "a"},
		"yaml":    {f: weighFlags{shell: "true"}, args: []string{hostile}, commands: []string{hostile}, label: "a"},
		"boolean": {args: []string{"true"}, commands: []string{"true"}, label: "true"},
		"env": {f: weighFlags{env: []string{"A=x y", "B='"}, cpus: "1.5", memory: "64MiB", network: true, ignore: true, cwd: "/usr"}, args: []string{"env"},
			commands: []string{"env"}, params: map[string]string{"env": `'A=x y' 'B='\'''`, "network": "true", "exit": "any", "cwd": "/usr", "cpu-limit": "1.5", "memory-limit": "64MiB"}},
		"figures": {f: weighFlags{figures: []string{"rate[1/s]=GET: ([0-9.]+)", "x=y=([0-9]+)", "is (.*)"}, jsonFigures: []string{"iops=jobs.0.read.iops"}}, args: []string{"b"}, commands: []string{"b"},
			params: map[string]string{"figures": `rate[1/s]='GET: ([0-9.]+)' x='y=([0-9]+)' figure='is (.*)' iops=json:jobs.0.read.iops`}, first: "rate"},
		"format": {f: weighFlags{format: "gobench"}, args: []string{"b"}, commands: []string{"b"}, params: map[string]string{"format": "gobench"}, first: "benchmark"},
		"mount":  {f: weighFlags{mounts: []string{"/a b:/c:ro", "/d"}}, args: []string{"ls"}, commands: []string{"ls"}, params: map[string]string{"mounts": "'/a b:/c:ro' /d:/d"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := weighingOf(t, c.f, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			st, err := parsed(w.study(w.paced(looked{run: 3 * time.Millisecond}, time.Minute)), cat)
			if err != nil {
				t.Fatalf("%v in\n%s", err, w.study(w.paced(looked{run: 3 * time.Millisecond}, time.Minute)))
			}
			var got []string
			for i := range st.Strata {
				r := st.WorkloadOf(i)
				got = append(got, r.Params["command"])
				for k, v := range c.params {
					if r.Params[k] != v {
						t.Errorf("%s = %q, want %q", k, r.Params[k], v)
					}
				}
				if first := cmp.Or(c.first, "wall"); r.Responses[0] != first || !slices.Contains(r.Responses, "peak_memory") {
					t.Errorf("responses %q, want %s first", r.Responses, first)
				}
				if c.label != "" && r.Label != c.label {
					t.Errorf("label %q", r.Label)
				}
			}
			if !slices.Equal(got, c.commands) || st.Workloads[0].Turns != mostTurns || st.Sentinel != nil || st.Budget.Time != time.Minute {
				t.Errorf("commands %q of %+v", got, st)
			}
		})
	}
}

// TestWeighUsage: a mistake ends with code 2, and says what to write without places in a study
// that nobody wrote.
func TestWeighUsage(t *testing.T) {
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    weighFlags
		args []string
		want string
	}{
		{args: nil, want: "write the command to weigh behind --"},
		{args: []string{"a", "--"}, want: "command 2 is empty"},
		{args: []string{"a b", "--", "a", "b"}, want: "is there twice"},
		{f: weighFlags{mounts: []string{"a:b:c"}}, args: []string{"a"}, want: "HOST:GUEST:ro"},
		{f: weighFlags{in: []string{"process"}}, args: []string{"a"}, want: "leaves no sandbox"},
		{f: weighFlags{in: []string{"runcc"}}, args: []string{"a"}, want: "runc"},
		{f: weighFlags{input: "/no/such/file"}, args: []string{"a"}, want: "/no/such/file"},
		{f: weighFlags{cpus: "many"}, args: []string{"a"}, want: "--cpus many is not a number"},
		{f: weighFlags{memory: "5"}, args: []string{"a"}, want: "--memory 5 is out of range"},
		{f: weighFlags{in: []string{"foo"}}, args: []string{"a"}, want: "--in foo: no such sandbox; write crun, runc"},
		{f: weighFlags{in: []string{"fake"}}, args: []string{"a"}, want: "--in fake: no such sandbox"},
		{f: weighFlags{in: []string{"gVisor"}}, args: []string{"a"}, want: "--in gVisor: no such sandbox; did you mean one of runsc-"},
		{f: weighFlags{http: "80/"}, args: []string{"a"}, want: "--http is for a server"},
		{f: weighFlags{ready: "tcp:80"}, args: []string{"a"}, want: "--ready is for a server"},
		{f: weighFlags{rate: "5"}, args: []string{"a"}, want: "--rate is for a server"},
		{f: weighFlags{rate: "5", server: "a", load: "b", ready: "tcp:80"}, want: "are for --http"},
		{f: weighFlags{loadImage: "a"}, args: []string{"a"}, want: "--load-image is for a server"},
		{f: weighFlags{loadImage: "a", server: "a", http: "80/"}, want: "--load-image is for --load"},
		{f: weighFlags{writable: true}, args: []string{"a"}, want: "--writable is for an image"},
		{f: weighFlags{insecure: true}, args: []string{"a"}, want: "--cacert and --insecure are for --server"},
		{f: weighFlags{warmup: -3}, args: []string{"a"}, want: "--warmup -3: write 0 or more"},
		{f: weighFlags{env: []string{"--"}}, args: []string{"a"}, want: `--env --: "--" is not a name`},
		{f: weighFlags{env: []string{"=x"}}, args: []string{"a"}, want: `"" is not a name`},
		{f: weighFlags{figures: []string{"Bad Name=(x)"}}, args: []string{"a"}, want: `--figure 'Bad Name=(x)': "Bad Name" is not a name`},
		{f: weighFlags{figures: []string{"a[parsec]=(x)"}}, args: []string{"a"}, want: `--figure 'a[parsec]=(x)': "parsec" is not a unit; write s,`},
		{f: weighFlags{figures: []string{"wall=(x)"}}, args: []string{"a"}, want: `the name "wall" is taken`},
		{f: weighFlags{figures: []string{"a=(x)"}, jsonFigures: []string{"a=b"}}, args: []string{"a"}, want: `--figure-json a=b: `},
		{f: weighFlags{format: "nope"}, args: []string{"a"}, want: "--format nope: write gobench, jmh"},
		{f: weighFlags{format: "none"}, args: []string{"a"}, want: "--format none: "},
		{f: weighFlags{timeout: "0s"}, args: []string{"a"}, want: "--timeout must be more than 0"},
		{f: weighFlags{timeout: "-5s"}, args: []string{"a"}, want: "--timeout must be more than 0"},
		{f: weighFlags{server: "a", load: "b", ready: "nope"}, want: `--ready nope is not tcp:PORT`},
		{f: weighFlags{mounts: []string{"/x:y"}}, args: []string{"a"}, want: `--mount /x:y is not HOST:GUEST`},
		{args: []string{"a | b"}, want: "--shell"},
		{args: []string{"a\xff"}, want: "UTF-8"},
	} {
		if c.f.server != "" {
			c.f.warmup = -1
		}
		w, err := weighingOf(t, c.f, c.args...)
		if err == nil {
			_, err = parsed(w.study(w.pilot()), cat)
		}
		var coded *codedError
		if !errors.As(err, &coded) || coded.code != exitUsage || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), ":1") {
			t.Errorf("%q %+v: %v, want %q", c.args, c.f, err, c.want)
		}
	}
}

// TestUnfitOutput: what is wrong with a figure names the flag, and shows the output of the program.
func TestUnfitOutput(t *testing.T) {
	f := weighFlags{figures: []string{"y=([0-9]+)"}, jsonFigures: []string{"x=a.b"}}
	cell := record.Cell{{Factor: "command", Value: "echo hi"}}
	for _, c := range []struct {
		cell             record.Cell
		what, tail, want string
	}{
		{nil, "figure x: the output is not JSON", "hi\n", "--figure-json x: the output is not JSON; the last run printed: hi"},
		{nil, `figure y: nothing in the output matches "([0-9]+)"`, "a\nb\n", "--figure y: nothing in the output matches \"([0-9]+)\"; the last run printed:\na\nb"},
		{cell, "figure y: it is bad", "", "echo hi: --figure y: it is bad; the last run printed nothing to standard output; with --shell and 2>&1, standard error counts too"},
	} {
		tr := &record.Trial{Cell: c.cell, Failure: &record.Failure{Kind: record.Unfit, Reason: "the output of main cannot be read: run 1: " + c.what, Tail: c.tail}}
		if got := failedNatively(tr, "echo hi", f); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	tr := &record.Trial{Failure: &record.Failure{Kind: record.Unfit, Reason: "the output of main cannot be read: run 1: the output is not jmh: there is no JSON in it", Tail: "hi"}}
	if got := failedNatively(tr, "a", weighFlags{format: "jmh"}); !strings.HasPrefix(got, "--format jmh: the output is not jmh") {
		t.Error(got)
	}
}

// TestFailedNatively: what fails before anything is weighed is told with what to do.
func TestFailedNatively(t *testing.T) {
	for _, c := range []struct {
		reason, tail, want string
	}{
		{"main ended with exit code 1", "timed: run 1 ended with exit code 1, and printed nothing\n", "a: fails natively: ended with exit code 1, and printed nothing; it has no terminal here, and no input without --input; --ignore-failure weighs it all the same"},
		{"main ended with exit code 1", "timed: run 1 ended with exit code 1\nx: Read-only file system\n", "a: fails natively: ended with exit code 1; a command sees this host's files read-only: let it write to a directory with --mount DIR\nx: Read-only file system"},
		{"server ended with exit code 1: the file system is read-only; give it a directory to write to with mounts", "x: Read-only file system\n", "a: fails natively: server ended with exit code 1: the file system is read-only; give it a directory to write to with --mount DIR:PATH\nx: Read-only file system"},
		{"server ended with exit code 1: the server.", "\"root\" execution of the PostgreSQL server is not permitted.\nthe server.\n",
			"a: fails natively: server ended with exit code 1; it runs as root here: put `setpriv --reuid USER --regid GROUP --clear-groups` before it\n\"root\" execution of the PostgreSQL server is not permitted.\nthe server."},
		{"server did not answer on port 80: last: connecting: connection refused", "",
			"a: fails natively: server did not answer on port 80: last: connecting: connection refused; it must listen on the port of --ready or --http, and on all addresses (0.0.0.0), not on loopback alone"},
		{"server answered wrongly on port 80: GET /x returned 404 Not Found, not 200, for 5s now", "",
			"a: fails natively: server answered wrongly on port 80: GET /x returned 404 Not Found, not 200, for 5s now; in --http and --ready, write a path that it answers with status 200"},
		{"server ended with exit code 1: q", "q\n", "a: fails natively: server ended with exit code 1\nq"},
	} {
		tr := &record.Trial{Failure: &record.Failure{Kind: "died", Reason: c.reason, Tail: c.tail}}
		if got := failedNatively(tr, "a", weighFlags{}); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
	tr := &record.Trial{Failure: &record.Failure{Kind: "died", Reason: "main ended with exit code 127", Tail: "timed: run 1 cannot start /bin/sh: no such file or directory: it, its interpreter or its loader is not in the sandbox; give an image or a mount that has it\n"}}
	if got := failedNatively(tr, "a | b", weighFlags{image: "./app", shell: "true"}); !strings.HasPrefix(got, "a | b: the image has no /bin/sh; leave --shell out") {
		t.Error(got)
	}
}

// TestReadOnlyImage: who writes to an image is told of the flag that lets it, once.
func TestReadOnlyImage(t *testing.T) {
	for reason, tail := range map[string]string{
		"main ended with exit code 1": "timed: run 1 ended with exit code 1\nx: Read-only file system\n",
		"server ended with exit code 1: the file system is read-only (x: Read-only file system); the files of an image are read-only, so have it write to /tmp, or set writable: true where the workload has that": "x: Read-only file system\n",
	} {
		tr := &record.Trial{Failure: &record.Failure{Kind: "died", Reason: reason, Tail: tail}}
		got := failedNatively(tr, "a", weighFlags{image: "./app"})
		if strings.Count(got, "so have it write to /tmp, or give --writable\n") != 1 || strings.Contains(got, "--mount") || strings.Contains(got, "writable: true") {
			t.Errorf("%q", got)
		}
	}
}

// TestValued: a flag that has taken the -- has no value.
func TestValued(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--env -- true", "--env has no value"}, {"--save -- true", "--save has no value"}, {"--in runc -- true", ""}, {"--env A=-- -- true", ""},
	} {
		cmd := (&app{}).weighVerb()
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		if err := valued(cmd.Flags()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

// TestWeighService: a server with a load of its own, and with the built-in client.
func TestWeighService(t *testing.T) {
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f      weighFlags
		params map[string]string
		first  string
		usage  string
	}{
		"load": {f: weighFlags{server: "redis-server --save ''", ready: "tcp:6379", load: "redis-benchmark -h {server} -q", figures: []string{"rate[1/s]=GET: ([0-9.]+)"}},
			params: map[string]string{"server": "redis-server --save ''", "load": "redis-benchmark -h {server} -q"}, first: "rate"},
		"image": {f: weighFlags{server: "x", ready: "tcp:80", load: "y", image: "./a", loadImage: "./b", writable: true},
			params: map[string]string{"image": "./a", "load-image": "./b", "writable": "true"}, first: "wall"},
		"url":  {f: weighFlags{server: "x", http: "http://localhost:80/a?b"}, params: map[string]string{"http": "80/a?b", "ready": "http:80/a?b"}, first: "rate"},
		"open": {f: weighFlags{server: "x", http: "8080/", rate: "50"}, params: map[string]string{"loop": "open", "rate": "50"}, first: "latency_p99"},
		"tls": {f: weighFlags{server: "x", http: "https://a.example/b", insecure: true},
			params: map[string]string{"http": "443/b", "tls": "full", "server-name": "a.example", "trust": "any"}, first: "rate"},
		"authority":    {f: weighFlags{server: "x", http: "https://a.example:8443/", cacert: "/dev/null"}, params: map[string]string{"http": "8443/", "trust": "/dev/null"}, first: "rate"},
		"no authority": {f: weighFlags{server: "x", http: "https://a.example/", cacert: "/no/such"}, usage: "--cacert: "},
		"no TLS":       {f: weighFlags{server: "x", http: "80/", insecure: true}, usage: "for --http https://"},
		"both":         {f: weighFlags{server: "x", http: "https://a/", insecure: true, cacert: "/dev/null"}, usage: "leave one of them out"},
		"ftp":          {f: weighFlags{server: "x", http: "ftp://localhost/"}, usage: "write http:// or https://"},
		"alone":        {f: weighFlags{server: "x"}, usage: "--load"},
		"never":        {f: weighFlags{server: "x", load: "y"}, usage: "--ready tcp:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			c.f.warmup = -1
			w, err := weighingOf(t, c.f)
			if c.usage != "" {
				if err == nil || !strings.Contains(err.Error(), c.usage) {
					t.Errorf("%v, want %q", err, c.usage)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text := w.study(w.paced(looked{run: time.Second}, time.Minute))
			st, err := parsed(text, cat)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			r := st.WorkloadOf(0)
			for k, v := range c.params {
				if r.Params[k] != v {
					t.Errorf("%s = %q, want %q", k, r.Params[k], v)
				}
			}
			if r.Kind != "service" || r.Responses[0] != c.first {
				t.Errorf("%s with %q", r.Kind, r.Responses)
			}
		})
	}
}

// TestServerLabel: a server has the name of its program, whatever starts it.
func TestServerLabel(t *testing.T) {
	for _, c := range []struct {
		text  string
		shell bool
		want  string
	}{
		{"/usr/sbin/nginx -g 'daemon off;'", false, "nginx"},
		{"setpriv --reuid=redis --regid redis --clear-groups redis-server --save ''", false, "redis-server"},
		{"env A=b nice -n 5 ./app", false, "app"},
		{"sh -c 'mkdir /tmp/a && exec ./app --port 80'", false, "app"},
		{"rm -rf /tmp/pg && mkdir /tmp/pg && cp -a /mnt/data /tmp/pg/ && exec setpriv --reuid postgres --regid postgres \\\n --clear-groups /usr/lib/postgresql/15/bin/postgres -D /tmp/pg/data 2>&1", true, "postgres"},
		{"A=1 redis-server | while read -r x; do echo $x; done", true, "redis-server"},
		{"nginx & wait", true, "nginx"},
		{"mkdir -p /run/nginx || exit 1; nginx -g 'daemon off;'", true, "nginx"},
		{"mkdir /tmp/a\ncd /tmp/a\npython3 -m http.server", true, "python3"},
		{"gosu www app; echo it\\'s over", true, "app"},
		{"sleep 1", true, "server"},
		{"exec", true, "server"},
	} {
		if got := serverLabel(c.text, c.shell); got != c.want {
			t.Errorf("%q is named %s, want %s", c.text, got, c.want)
		}
	}
}

// TestWeighTiming: a long command has few turns, and one that is slower in a sandbox is not cut off.
func TestWeighTiming(t *testing.T) {
	w := &weighing{warmup: -1, commands: []string{"a"}, sandboxes: []string{"process", "runc"}}
	for run, want := range map[time.Duration]timing{
		0:                      {turns: 4, fill: turnTime, warmup: 1, limit: 10 * time.Second, expect: 10 * time.Microsecond, budget: time.Minute},
		time.Millisecond:       {turns: 4, fill: turnTime, warmup: 1, limit: 10 * time.Second, expect: time.Millisecond, budget: time.Minute},
		500 * time.Millisecond: {turns: 2, fill: turnTime, limit: 25 * time.Second, expect: 500 * time.Millisecond, budget: time.Minute},
		30 * time.Second:       {turns: 1, fill: turnTime, limit: time.Minute, expect: 30 * time.Second, budget: time.Minute},
	} {
		if got := w.paced(looked{run: run}, time.Minute); got != want {
			t.Errorf("%s: %+v, want %+v", run, got, want)
		}
	}
	w.sandboxes = []string{"process", "a", "b", "c", "d"}
	if got := w.paced(looked{run: time.Millisecond, beside: 200 * time.Millisecond}, 20*time.Second); got.turns != 2 || got.fill != turnTime/2 {
		t.Errorf("five sandboxes in 20 s: %+v", got)
	}
	// What three blocks of three sandboxes leave of 5 s: a turn each, as short as it can be.
	w.sandboxes = []string{"process", "runc", "runsc-systrap"}
	if got := w.paced(looked{run: time.Millisecond, beside: 300 * time.Millisecond}, 5*time.Second); got.turns != 1 || got.fill != leastFill || got.warmup != 1 {
		t.Errorf("three sandboxes in 5 s: %+v", got)
	}
	if got := w.paced(looked{run: time.Millisecond, beside: 100 * time.Millisecond}, time.Minute); got.turns != mostTurns || got.fill != turnTime {
		t.Errorf("three sandboxes in a minute: %+v", got)
	}
	// On a host on which a sandbox takes seconds to start, so do they in a minute.
	if got := w.paced(looked{run: time.Millisecond, beside: 6 * time.Second}, time.Minute); got.turns != 1 {
		t.Errorf("slow starts: %+v", got)
	}
	// A turn of the built-in client has time for answers that take ten times as long as natively.
	w.builtIn, w.server = true, "a"
	if got := w.paced(looked{run: 100 * time.Millisecond}, time.Minute).fill; got != 500*time.Millisecond {
		t.Errorf("answers of 100 ms: the fill is %s", got)
	}
	if got := w.paced(looked{run: time.Minute}, time.Minute).fill; got > 800*time.Millisecond {
		t.Errorf("answers of a minute: three blocks do not fit in a minute with %s", got)
	}
	w.builtIn, w.server = false, ""
	w.timeout = 3 * time.Minute // what the user gave holds
	if got := w.paced(looked{run: time.Millisecond}, time.Minute).limit; got != w.timeout || w.pilot().limit != w.timeout {
		t.Errorf("the limit is %s and %s, not %s", got, w.pilot().limit, w.timeout)
	}
}

// TestWeighWantsTime: what is proposed can be given to --budget, and is enough for a long block. Without an interval, none is called wide.
func TestWeighWantsTime(t *testing.T) {
	long := []record.Trial{{Block: 1, Duration: 40 * time.Second}, {Block: 1, Duration: 24 * time.Second}}
	three := []record.Trial{{Block: 3, Duration: time.Second}}
	for _, c := range []struct {
		within      time.Duration
		trials      []record.Trial
		says, wants string
	}{
		{20 * time.Second, three, "The intervals are wide. With", "80s"}, {time.Minute, three, "The intervals are wide. With", "4m"},
		{20 * time.Second, long, "The budget was too short for an interval, which takes 3 blocks. Give", "7m"}, {5 * time.Second, three, "The intervals are wide. With", "20s"},
	} {
		got := wantsTime(c.within, c.trials)
		if !strings.HasPrefix(got, c.says+" --budget "+c.wants) {
			t.Errorf("%s after %s, want %s", got, c.within, c.wants)
		}
		if d, err := duration("budget", c.wants); err != nil || d < 4*c.within {
			t.Errorf("%s: %v", c.wants, err)
		}
	}
}

// TestWeighOnCluster: what a cluster cannot do is refused before anything is asked there, and what it can
// becomes the study that a host would have.
func TestWeighOnCluster(t *testing.T) {
	for name, c := range map[string]struct {
		f    weighFlags
		want string
	}{
		"place":     {weighFlags{on: "model"}, "--on k8s"},
		"host":      {weighFlags{host: "ssh://a"}, "--host names a machine"},
		"image":     {weighFlags{}, "needs --image"},
		"cpus":      {weighFlags{image: "app:1", cpuset: "0-1"}, "CPU manager"},
		"authority": {weighFlags{image: "app:1", cacert: "ca.pem"}, "give --insecure"},
		"own image": {weighFlags{image: "app:1"}, "needs --tare-image"},
	} {
		c.f.on = cmp.Or(c.f.on, onCluster)
		if _, _, _, err := (&app{}).weighOnCluster(t.Context(), []string{"true"}, &c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	cat := offeredIn([]sandbox.Kind{pod.New(pod.Class{Name: "process"}, nil, nil, nil), pod.New(pod.Class{Name: "gvisor", Class: "gvisor", Handler: "runsc"}, nil, nil, nil)})
	f := weighFlags{on: onCluster, warmup: -1, image: "redis:7", server: "redis-server", ready: "tcp:6379", load: "redis-benchmark -h {server}", mounts: []string{"data:/data"}}
	if err := f.fitsCluster(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.weighing(nil, []string{"gvisor", "process"}, cat, onNodes()); err == nil || !strings.Contains(err.Error(), "absolute path") {
		t.Errorf("a directory of this machine: %v", err)
	}
	f.mounts = nil
	w, err := f.weighing(nil, []string{"gvisor", "process"}, cat, onNodes())
	if err != nil {
		t.Fatal(err)
	}
	st, err := parsed(w.study(w.pilot()), cat)
	if err != nil {
		t.Fatal(err)
	}
	res, err := st.Resolve(cat, st.Strata[0].Cells[0])
	if err != nil {
		t.Fatal(err)
	}
	if p := res.Params; p["image"] != "redis:7" || p["load-image"] != "redis:7" || p["cwd"] != "" || res.Apart || !slices.Equal(w.sandboxes, []string{"process", "gvisor"}) {
		t.Errorf("%+v of %v", res, w.sandboxes)
	}
}
