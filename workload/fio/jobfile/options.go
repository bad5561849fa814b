package jobfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/param"
)

// use says what an option of fio is for.
type use int

const (
	unknown use = iota
	load        // it describes the load
	report      // it shapes fio's report or log; tare has its own
)

// options are those that a job file may have. An option that is not here may write elsewhere, run
// a program, or change the host. Source: fio 3.33, `fio --cmdhelp=all`, with its aliases.
//
//nolint:gochecknoglobals // a table that nothing changes
var options = sync.OnceValue(func() map[string]use {
	out := map[string]use{}
	for name := range strings.FieldsSeq(`
		wait_for filename directory filename_format unique_filename
		rw readwrite bs blocksize ba blockalign bsrange blocksize_range bssplit bs_unaligned blocksize_unaligned
		randrepeat allrandrepeat randseed norandommap rw_sequencer random_generator random_distribution percentage_random softrandommap
		ioengine iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low
		serialize_overlap io_submit_mode
		size io_size io_limit filesize file_append offset fileoffset offset_increment offset_align number_ios
		nrfiles nr_files file_service_type openfiles fallocate fadvise_hint
		fsync fdatasync write_barrier sync_file_range direct atomic buffered overwrite loops numjobs startdelay start_delay
		runtime time_based ramp_time clocksource mem iomem mem_align iomem_align lockmem
		verify do_verify verify_interval verify_offset verify_pattern verify_fatal verify_async verify_backlog verify_backlog_batch
		zonemode zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones job_max_open_zones
		rwmixread rwmixwrite nice prio prioclass
		thinktime thinktime_spin thinktime_blocks thinktime_blocks_type thinktime_iotime
		rate rate_min rate_process rate_cycle rate_ignore_thinktime rate_iops rate_iops_min
		max_latency latency_target latency_window latency_percentile latency_run
		invalidate sync write_hint create_serialize create_fsync create_on_open pre_read
		cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy
		end_fsync fsync_on_close unlink unlink_each_loop exitall exit_what exitall_on_error stonewall wait_for_previous new_group thread
		zero_buffers refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk
		dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global
		flow flow_id flow_sleep steadystate steadystate_duration ss_dur steadystate_ramp_time ss_ramp hugepage-size
		hipri fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored uncached nowait force_async userspace_reap cmdprio_percentage`) {
		out[name] = load
	}
	for name := range strings.FieldsSeq(`
		description group_reporting per_job_logs clat_percentiles lat_percentiles slat_percentiles percentile_list significant_figures disk_util
		block_error_percentiles unified_rw_reporting kb_base unit_base bwavgtime iopsavgtime
		log_entries log_avg_msec log_hist_msec log_hist_coarseness log_max_value log_offset log_prio log_compression log_compression_cpus
		log_store_compressed log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id`) {
		out[name] = report
	}
	return out
})

// refused are options that a user may well have in a file, with what to do instead.
//
//nolint:gochecknoglobals // a table that nothing changes
var refused = map[string][2]string{
	"exec_prerun":         {"it runs a program", "remove it; caches are dropped by the parameter cache, and steps before the load are in prepare"},
	"exec_postrun":        {"it runs a program", "remove it"},
	"write_bw_log":        {"it writes a file outside of the target", "remove it: tare records the rate over time"},
	"write_lat_log":       {"it writes a file outside of the target", "remove it: tare records the histograms"},
	"write_iops_log":      {"it writes a file outside of the target", "remove it: tare records the rate over time"},
	"write_hist_log":      {"it writes a file outside of the target", "remove it: tare records the histograms"},
	"write_iolog":         {"it writes a file outside of the target", "remove it"},
	"read_iolog":          {"a log names the files that fio writes to", "describe the load by options"},
	"merge_blktrace_file": {"it writes a file outside of the target", "remove it"},
	"replay_redirect":     {"it writes to a device outside of the target", "remove it"},
	"opendir":             {"it takes every file of a directory", "name the files in filename, or give nrfiles"},
	"lockfile":            {"it has no effect on the load", "remove it"},
	"verify_dump":         {"it writes files outside of the target", "remove it"},
	"verify_state_save":   {"it writes a file outside of the target", "remove it"},
	"verify_state_load":   {"it reads a file outside of the target", "remove it"},
	"error_dump":          {"it writes files outside of the target", "remove it"},
	"ignore_error":        {"tare counts an error as a failure", "remove it"},
	"continue_on_error":   {"tare counts an error as a failure", "remove it"},
	"ioscheduler":         {"it changes the host's device for everybody", "set the scheduler before the study; tare records it"},
	"allow_mounted_write": {"it lets fio write to a mounted device", "remove it"},
	"fill_device":         {"it writes until the disk is full", "give a size"},
	"fill_fs":             {"it writes until the disk is full", "give a size"},
	"cgroup":              {"the sandbox has a cgroup of its own", "use the factors cpu-limit and memory-limit"},
	"cgroup_weight":       {"the sandbox has a cgroup of its own", "use the factors cpu-limit and memory-limit"},
	"uid":                 {"the sandbox has the user", "remove it"},
	"gid":                 {"the sandbox has the user", "remove it"},
	"profile":             {"it replaces the file's own options", "write them out"},
	"create_only":         {"it measures nothing", "remove it: tare lays the files out before the load"},
	"verify_only":         {"it measures nothing", "remove it"},
	"stats":               {"it takes a job out of the report", "remove it"},
	"gtod_reduce":         {"it switches off the latencies", "remove it"},
	"disable_lat":         {"it switches off the latencies", "remove it"},
	"disable_clat":        {"it switches off the latencies", "remove it"},
	"disable_slat":        {"it switches off the latencies", "remove it"},
}

// engines are the engines that work only on files and devices.
func engines() []string {
	return []string{"sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap"}
}

// Target is where the file may write.
type Target struct {
	Path   string // in the sandbox: a directory, or devices with : between them
	Device bool
}

// Check refuses options that do anything except describe a load on the target.
func (f *File) Check(t Target) error {
	jobs := 0
	for i := range f.Sections {
		s := &f.Sections[i]
		for k := range s.Options {
			o := &s.Options[k]
			if what, instead := t.wrong(*o); what != "" {
				at := o.At
				if _, no := refused[o.Name]; no || options()[o.Name] == unknown {
					at = o.Column
				}
				return &Error{o.Line, at, what, instead}
			}
			if o.Name == "filename" && !t.Device { // fio puts the directory before each name
				o.Value = strings.ReplaceAll(":"+o.Value, ":"+t.dir(), ":")[1:]
			}
		}
		if err := s.sized(); err != nil && !t.Device { // a device has its own size
			return err
		}
		if jobs += s.Jobs(); jobs > MaxJobs {
			return &Error{s.Line, 1, fmt.Sprintf("up to here the file has %d jobs", jobs), fmt.Sprintf("lower numjobs: at most %d are possible", MaxJobs)}
		}
	}
	return nil
}

// wrong says what is wrong with an option, and what to write.
func (t Target) wrong(o Option) (what, write string) {
	if why, no := refused[o.Name]; no {
		return o.Name + " is refused: " + why[0], why[1]
	}
	u := options()[o.Name]
	if u == unknown {
		return fmt.Sprintf("tare knows no option %q of fio that describes a load", o.Name), instead(o.Name)
	}
	if strings.Contains(o.Value, "$") && o.Name != "filename_format" && u != report {
		return "fio's own $words are only for filename_format", "write ${NAME}, and give NAME in vars"
	}
	if what, write := badNumber(o); what != "" {
		return what, write
	}
	switch o.Name {
	case "ioengine":
		if !slices.Contains(engines(), o.Value) {
			return fmt.Sprintf("ioengine=%s is refused: it may reach beyond the target", o.Value), "write one of " + strings.Join(engines(), ", ")
		}
	case "rw", "readwrite":
		if len(directions(o.Value)) == 0 {
			return fmt.Sprintf("tare has no figures of %s=%s", o.Name, o.Value), "write one of read, write, randread, randwrite, rw, randrw"
		}
	case "numjobs":
		if n, err := strconv.Atoi(o.Value); err != nil || n < 1 || n > MaxJobs {
			return fmt.Sprintf("numjobs=%s is not a number from 1 to %d", o.Value, MaxJobs), "write one"
		}
	case "runtime", "ramp_time", "startdelay", "start_delay":
		if _, ok := seconds(o.Value); !ok {
			return fmt.Sprintf("%s=%s is not a time that tare can read", o.Name, o.Value), "write one such as 10s or 500ms"
		}
	case "directory":
		if t.Device {
			return "the target is a device, which has no directory", "remove the option"
		}
		if o.Value != t.Path {
			return fmt.Sprintf("directory=%s is outside of the target, which is %s in the sandbox", o.Value, t.Path), "write directory=${TARGET}, or remove it"
		}
	case "filename":
		for name := range strings.SplitSeq(o.Value, ":") {
			if why := t.file(name); why != "" {
				return why, "write a name without /, or ${TARGET}/NAME; ${TARGET} alone if the target is a device"
			}
		}
	case "filename_format":
		if strings.Contains(o.Value, "/") || strings.Contains(o.Value, "..") {
			return "filename_format leads out of the target", "write it without / and .."
		}
	case "mem", "iomem", "buffer_pattern", "verify_pattern":
		if strings.ContainsAny(o.Value, "/'") {
			return o.Name + " names a file outside of the target", "remove the file's name"
		}
	}
	return "", ""
}

// dir is the directory, with a slash at its end.
func (t Target) dir() string { return strings.TrimSuffix(t.Path, "/") + "/" }

// file says what is wrong with one name of filename.
func (t Target) file(name string) string {
	rest, below := strings.CutPrefix(name, t.dir())
	switch {
	case t.Device && !slices.Contains(strings.Split(t.Path, ":"), name):
		return fmt.Sprintf("filename %q is not the target, which is %s in the sandbox", name, t.Path)
	case t.Device:
		return ""
	case below:
		name = rest
	}
	if name == "" || name == "-" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return fmt.Sprintf("filename %q is outside of the target, which is %s in the sandbox", name, t.Path)
	}
	return ""
}

// instead says what an unknown option may have meant.
func instead(name string) string {
	if near := param.Suggest(name, slices.Sorted(maps.Keys(options()))); strings.HasPrefix(near, "did") {
		return near
	}
	return "remove it"
}

// Jobs returns the number of a section's processes.
func (s *Section) Jobs() int {
	o, _ := s.Get("numjobs")
	n, err := strconv.Atoi(o.Value)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// RW is the section's order of requests: read, write, randread, randwrite, rw or randrw.
func (s *Section) RW() string {
	o, ok := s.Get("rw", "readwrite")
	if !ok {
		return "read"
	}
	name, _, _ := strings.Cut(o.Value, ":")
	if name == "readwrite" {
		return "rw"
	}
	return name
}

func directions(rw string) []string {
	name, _, _ := strings.Cut(rw, ":")
	switch name {
	case "read", "randread":
		return []string{"read"}
	case "write", "randwrite":
		return []string{"write"}
	case "rw", "readwrite", "randrw":
		return []string{"read", "write"}
	}
	return nil
}

// Times returns a section's ramp and its time. timed is false if only its size ends it.
func (s *Section) Times() (ramp, run time.Duration, timed bool) {
	o, _ := s.Get("ramp_time")
	ramp, _ = seconds(o.Value)
	delay, _ := s.Get("startdelay", "start_delay")
	wait, _ := seconds(delay.Value)
	o, timed = s.Get("runtime")
	run, _ = seconds(o.Value)
	return ramp + wait, run, timed && run > 0
}

// seconds reads one of fio's times. A number without a unit is in seconds.
func seconds(text string) (time.Duration, bool) {
	if text == "" {
		return 0, true
	}
	i := strings.LastIndexAny(text, "0123456789.") + 1
	unit, ok := map[string]time.Duration{"": time.Second, "s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "m": time.Minute, "h": time.Hour}[text[i:]]
	n, err := strconv.ParseFloat(text[:i], 64)
	if !ok || err != nil || n < 0 || n*unit.Seconds() > 24*3600 {
		return 0, false
	}
	return time.Duration(n * float64(unit)), true
}
