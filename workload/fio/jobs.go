package fio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/volume"
	"tare/workload"
	"tare/workload/fio/jobfile"
	"tare/workload/target"
)

// jobs is a checked job file.
type jobs struct {
	file     *jobfile.File
	sections []section
	warmup   time.Duration // of the sections that begin first
	expect   time.Duration
	timed    bool // all sections have a runtime
}

// untimed is how long a job file without a time may take.
const untimed = 30 * time.Minute

// replaced are the parameters that a job file can have as ${NAME}.
func replaced(v param.Values) map[string]string {
	return map[string]string{
		"rw": v.Str("rw"), "jobs": v.Str("jobs"), "iodepth": v.Str("iodepth"), "engine": v.Str("engine"), "fsync": v.Str("fsync"),
		"bs": strconv.FormatInt(v.Size("bs"), 10), "size": strconv.FormatInt(v.Size("size"), 10),
		"duration": millis(v.Duration("duration")), "warmup": millis(v.Duration("warmup")),
	}
}

// allowed is where the jobs may write.
func allowed(v param.Values) jobfile.Target {
	if isDevice(v) {
		return jobfile.Target{Path: devices(v), Device: true}
	}
	return jobfile.Target{Path: directory(v)}
}

// readJobs reads and checks the job file.
func readJobs(v param.Values) (*jobs, error) {
	vars, err := parseVars(v.Str("vars"))
	if err != nil {
		return nil, &param.ValueError{Param: "vars", Err: err}
	}
	values, used := map[string]string{"TARGET": allowed(v).Path}, map[string]bool{}
	for name, text := range replaced(v) {
		values[strings.ToUpper(name)] = text
	}
	for name := range vars {
		if _, ours := values[name]; ours {
			return nil, &param.ValueError{Param: "vars", Err: fmt.Errorf("vars: ${%s} is tare's own; choose another name, or set the parameter %s", name, strings.ToLower(name))}
		}
	}
	maps.Copy(values, vars)
	f, err := jobfile.Parse(v.Str("jobfile"), func(name string) (string, bool) {
		used[name] = true
		text, ok := values[name]
		return text, ok
	})
	if err == nil {
		err = f.Check(allowed(v))
	}
	if err != nil {
		return nil, inFile(err)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !used[name] {
			return nil, &param.ValueError{Param: "vars", Err: fmt.Errorf("vars: the job file has no ${%s}; remove it", name)}
		}
	}
	for _, p := range New().Params() {
		room := sized(v) && (p.Name == "size" || p.Name == "jobs")
		if _, is := replaced(v)[p.Name]; is && v.Str(p.Name) != p.Default && !used[strings.ToUpper(p.Name)] && !room {
			return nil, &param.ValueError{Param: p.Name, Err: fmt.Errorf("%s = %s has no effect, because the job file has no ${%s}; write that into it, or remove %s", p.Name, v.Str(p.Name), strings.ToUpper(p.Name), p.Name)}
		}
	}
	return plan(f), nil
}

// plan finds how long the sections take.
func plan(f *jobfile.File) *jobs {
	j := &jobs{file: f, timed: true}
	groups := f.Groups()
	for n, g := range groups {
		longest := time.Duration(0)
		for _, i := range g {
			s := &f.Sections[i]
			ramp, run, timed := s.Times()
			j.timed = j.timed && timed
			if n == 0 {
				j.warmup = max(j.warmup, ramp)
			}
			longest = max(longest, ramp+run)
			out := section{rw: s.RW(), jobs: s.Jobs(), warmup: ramp}
			if o, ok := s.Get("ioengine"); ok {
				out.engine = o.Value
			}
			if len(f.Sections) > 1 {
				out.name = jobfile.Word(s.Name)
			}
			if len(groups) == 1 && timed {
				out.duration = run
			}
			j.sections = append(j.sections, out)
		}
		j.expect += longest
	}
	j.expect -= j.warmup
	return j
}

// inFile gives a mistake its place in the file, for the study's reader.
func inFile(err error) error {
	var e *jobfile.Error
	if !errors.As(err, &e) {
		return err
	}
	return &param.FileError{Param: "jobfile", Line: e.Line, Column: e.Column, What: e.What, Instead: e.Instead}
}

// parseVars reads "name=value name=value".
func parseVars(text string) (map[string]string, error) {
	out := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		switch _, twice := out[name]; {
		case !ok || name == "" || value == "" || strings.ContainsAny(name, "${}"):
			return nil, fmt.Errorf("vars: %q is not name=value; write vars: \"mix=70 think=2ms\"", word)
		case strings.ContainsAny(value, "$;#[]"):
			return nil, fmt.Errorf("vars: %q has a character with a meaning of its own in a job file: one of $ ; # [ ]", word)
		case twice:
			return nil, fmt.Errorf("vars: %s is given twice; remove one", name)
		}
		out[name] = value
	}
	return out, nil
}

// Scripts that give fio a job file on its standard input.
const (
	layoutJobs = `printf '%s' "$1" | fio --output=/dev/null - || exit` + "\n"
	warmJobs   = `for f in "$2"/*; do [ -f "$f" ] && cat "$f" >/dev/null; done; :`
	runJobs    = `fio() { printf '%s' "$jobs" | command fio --eta=never --output-format=json+ -; }
jobs=$1; set --
` + script
)

// volumes are those of the load, as large as the job file needs them. It decides alone how much of a given device must be there.
func (j *jobs) volumes(v param.Values) []volume.Volume {
	out := volumes(v)
	for i := range out {
		x := &out[i]
		switch reach := j.file.Reach(x.Path(), len(out), v.Size("size")); {
		case x.Medium == volume.Device && reach > 0:
			x.Size = max(reach, leastDevice)
		case x.Medium == volume.Image:
			x.Size = max(x.Size, target.Volumes(target.Image, j.file.Bytes(), "")[i].Size)
		case x.Mode == volume.Block && x.Medium != volume.Device:
			x.Size = max(x.Size, reach)
		}
	}
	return out
}

// jobRoles runs the job file.
func jobRoles(v param.Values) ([]workload.Role, error) {
	if err := checkTarget(v); err != nil {
		return nil, err
	}
	if v.Float("rate") > 0 {
		return nil, &param.ValueError{Param: "rate", Err: fmt.Errorf("rate = %s has no effect on a job file; write rate_iops (of each job) and rate_process=poisson there", v.Str("rate"))}
	}
	j, err := readJobs(v)
	if err != nil {
		return nil, err
	}
	duration := j.expect
	base := []string{"directory=" + directory(v), "fallocate=none", "direct=" + flag(v.Str("cache") == "direct"), "invalidate=" + flag(v.Str("cache") == "dropped")}
	if isDevice(v) {
		base[0], base[1] = "filename="+allowed(v).Path, "size="+strconv.FormatInt(v.Size("size"), 10)
	}
	text, create := j.file.Text(append(slices.Clone(base), reported(duration)...)...), j.file.Text(append(base, "create_only=1")...)
	if len(text) > 2*jobfile.MaxText {
		return nil, &param.FileError{Param: "jobfile", Line: 1, Column: 1, What: fmt.Sprintf("with [global] in each section the file has %d bytes", len(text)), Instead: "make several files of it"}
	}
	role := workload.Role{
		Name: "main", Mode: workload.Exec, Needs: []string{"fio", "sh", "cat"},
		Volumes: j.volumes(v), Writable: v.Str("target") == "root", Room: j.file.Bytes(), DropCaches: cold(v),
		Warmup: j.warmup, Expect: duration, Until: "{",
		Args: []string{"sh", "-c", runJobs, "sh", text},
	}
	if !j.timed {
		role.Expect, role.Within = max(role.Expect, v.Duration("duration")), untimed
	}
	switch {
	case isDevice(v):
		role.Before = append([]string{"fio"}, fillDevice(role.Volumes, "write")...)
	case v.Str("cache") == "warm":
		role.Before = []string{"sh", "-c", layoutJobs + warmJobs, "sh", create, directory(v)}
	default:
		role.Before = []string{"sh", "-c", layoutJobs, "sh", create}
	}
	if err := prepare(&role, v); err != nil {
		return nil, err
	}
	return []workload.Role{role}, nil
}

// Notes implements workload.Noter. fio starts sections at the same time unless they say
// otherwise, and its report does not show it.
func (fio) Notes(v param.Values) []param.FileError {
	if v.Str("jobfile") == "" {
		return nil
	}
	j, err := readJobs(v)
	if err != nil {
		return nil
	}
	var out []param.FileError
	for _, g := range j.file.Groups() {
		if len(g) < 2 {
			continue
		}
		var names []string
		for _, i := range g {
			names = append(names, j.file.Sections[i].Name)
		}
		s := j.file.Sections[g[1]]
		out = append(out, param.FileError{Param: "jobfile", Line: s.Line, Column: 1,
			What:    fmt.Sprintf("the sections %s run at the same time, so each is slowed by the others", strings.Join(names, ", ")),
			Instead: "write stonewall into each but the first, if they should run one after another"})
	}
	return out
}

// sized reports whether size and jobs decide how large the target is.
func sized(v param.Values) bool {
	vs := volumes(v)
	return len(vs) > 0 && vs[0].Medium != volume.Device && vs[0].Size > 0
}
