package modelled

import (
	"strings"

	"tare/model"
	"tare/record"
	"tare/study"
)

// kindFio is the workload fio.
const kindFio = "fio"

// disk is a cell of the workload fio in terms of the model.
func disk(res study.Resolved) (model.Disk, error) {
	d, v := model.DefaultDisk(), res.Params
	d.Copies = res.Copies
	d.Jobs, d.Depth, d.Size = v.Int("jobs"), v.Int("iodepth"), int(v.Size("bs"))
	d.Rate = v.Float("rate")
	rw, random := strings.CutPrefix(v.Str("rw"), "rand")
	d.Write, d.Sequential = rw == "write", !random
	switch target := v.Str("target"); {
	case v.Str("jobfile") != "":
		return d, notModelled("job files of fio; write rw, bs, jobs and iodepth")
	case rw != "read" && rw != "write":
		return d, notModelled("reads and writes together; write rw: randread, randwrite, read or write")
	case v.Str("cache") != "direct":
		return d, notModelled("the page cache (cache: %s); write cache: direct", v.Str("cache"))
	case target == "tmpfs" || target == "bind" || target == "root":
		return d, notModelled("fio on target %s; write target: data, image, block or device", target)
	case v.Int("fsync") > 0:
		return d, notModelled("fsync; write fsync: 0")
	case res.CPULimit > 0:
		return d, notModelled("fio under a CPU limit; write cpu-limit: [none]")
	}
	o := res.Options
	switch t := res.Traits; {
	case t.Family == record.FamilyNative, t.Family == record.FamilyContainer && t.OwnKernel == record.No:
		d.Machine = false
	case t.Family == record.FamilyVM && o["io_threads"] != "" && t.Emulated != record.Yes:
		switch {
		case o.Str("disk") == "luks":
			return d, notModelled("encrypted disks; write disk: raw")
		case o.Str("disk_cache") != "none":
			return d, notModelled("the host's page cache (disk_cache: %s); write disk_cache: none", o.Str("disk_cache"))
		}
		d.Threads = o.Int("io_threads")
		d.VCPUs = model.Default().Host.Cores
		if o.Str("default_vcpus") != all {
			d.VCPUs = o.Int("default_vcpus")
		}
		if q := o.Str("disk_queues"); q != auto {
			d.VCPUs = min(d.VCPUs, o.Int("disk_queues"))
		}
	default:
		return d, notModelled("fio in sandbox %s; the model has processes, containers and the sandbox vm with hardware virtualization", res.Sandbox)
	}
	if err := d.Check(); err != nil {
		return d, notModelled("%v", err)
	}
	return d, nil
}
