package pbench

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"tare/imports"
	"tare/record"
)

// host reads the tools of the machine of an endpoint's sandbox: CPU by role from pidstat, the
// sandbox's cgroups from cpuacct, and the whole machine from mpstat or sar and iostat.
func (x *gathering) host(dir, name, endpoint string, e Endpoint) error {
	procs, err := x.tables(dir, "pidstat", isPidstat)
	if err != nil {
		return err
	}
	groups, err := x.tables(dir, "cpuacct", func(f string) bool { return e.Cgroup != "" && strings.Contains(f, e.Cgroup) })
	if err != nil {
		return err
	}
	for _, p := range procs { // there is one file
		x.processes(p, name, endpoint, e)
	}
	x.cgroup(groups, endpoint)
	whole, err := x.processors(dir, func(mode, _ string) record.Series {
		return record.Series{Name: "system_cpu", Unit: record.Second, Labels: record.MakeLabels(record.LabelMode, mode)}
	})
	if err != nil {
		return err
	}
	devices, err := x.devices(dir)
	if err != nil {
		return err
	}
	if whole = append(whole, devices...); len(whole) > 0 {
		x.whole[endpoint] = whole
	}
	return nil
}

// processes sums the CPU of an endpoint's processes by role. If only the whole process of a VMM was
// read, it counts as vcpu, because its threads cannot be distinguished.
func (x *gathering) processes(p *table, name, endpoint string, e Endpoint) {
	procs := make([]process, len(p.names))
	mine := map[string]bool{} // processes of VMMs that count
	threads := map[string]bool{}
	for i, column := range p.names {
		procs[i], _ = parseProcess(column)
		if procs[i].vmm() && strings.Contains(procs[i].command, e.Process) {
			mine[procs[i].pid] = true
		}
		if procs[i].role("") == record.RoleVCPU {
			threads[procs[i].pid] = true
		}
	}
	if len(mine) > 1 && e.Process == "" {
		x.warn("%d virtual machines ran on %s, and all of them count as the %s's; name one with process: in the --map file", len(mine), name, endpoint)
	}
	if len(mine) > 0 {
		x.vmm[endpoint] = true
	}
	columns := map[record.ThreadRole][]int{} // by role
	for i, one := range procs {
		role := one.role(x.benchmark)
		switch owner := one.owner(); {
		case mine[one.pid] && !threads[one.pid]:
			role = record.RoleVCPU
		case mine[one.pid] && role == "":
			role = record.RoleVMM
		case role == "", owner != "" && !mine[owner], one.vmm() && !mine[one.pid]:
			continue
		case role == record.RoleWorkload && len(mine) > 0: // the other endpoint's, or the harness's
			continue
		}
		columns[role] = append(columns[role], i)
		if one.single(role) && (threads[one.pid] || role == record.RoleVhost) {
			s := p.counter(record.Series{Name: "thread_cpu_time", Unit: record.Second, Labels: record.MakeLabels(record.LabelEndpoint, endpoint,
				record.LabelRole, string(role), "thread", imports.Clean(one.command), "tid", cmp.Or(one.tid, one.pid))}, []int{i}, 0.01, x.t.Start)
			x.said = append(x.said, s)
		}
	}
	var all []int // that the sandbox's cgroup is charged for
	for _, role := range slices.Sorted(maps.Keys(columns)) {
		x.said = append(x.said, p.counter(record.Series{Name: record.CPUTime, Unit: record.Second,
			Labels: record.MakeLabels(record.LabelEndpoint, endpoint, record.LabelRole, string(role))}, columns[role], 0.01, x.t.Start))
		if role != record.RoleShim {
			all = append(all, columns[role]...)
		}
	}
	if len(all) > 0 {
		x.said = append(x.said, p.counter(record.Series{Name: record.CgroupCPU, Unit: record.Second, Labels: record.MakeLabels(record.LabelEndpoint, endpoint)}, all, 0.01, x.t.Start))
	}
}

// cgroup takes the CPU of a sandbox's cgroup, the one with the shortest matching name, in
// place of the processes' sum, and the CPU of each vCPU's thread from libvirt's cgroups.
func (x *gathering) cgroup(groups map[string]*table, endpoint string) {
	names := slices.Sorted(maps.Keys(groups))
	if len(names) == 0 {
		return
	}
	top := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	labels := record.MakeLabels(record.LabelEndpoint, endpoint)
	take := func(s record.Series, file string) record.Series {
		columns := make([]int, len(groups[file].names)) // a column a NUMA node, cores
		for i := range columns {
			columns[i] = i
		}
		s.Unit = record.Second
		return groups[file].counter(s, columns, 1, x.t.Start)
	}
	x.said = slices.DeleteFunc(x.said, func(s record.Series) bool { return s.Name == record.CgroupCPU && s.Labels == labels })
	x.said = append(x.said, take(record.Series{Name: record.CgroupCPU, Labels: labels}, top))
	for _, f := range names {
		if id, ok := strings.CutPrefix(f, strings.TrimSuffix(top, ".csv")+"_vcpu"); ok {
			x.said = append(x.said, take(record.Series{Name: "thread_cpu_time", Labels: record.MakeLabels(record.LabelEndpoint, endpoint, record.LabelRole, string(record.RoleVCPU),
				"thread", strings.TrimSuffix("vcpu"+id, ".csv"), "tid", strings.TrimSuffix(id, ".csv"))}, f))
		}
	}
}

// guest reads tools that ran inside an endpoint's virtual machine.
func (x *gathering) guest(dir, endpoint string) error {
	out, err := x.processors(dir, func(mode, cpu string) record.Series {
		return record.Series{Name: record.GuestCPU, Unit: record.Second, Labels: record.MakeLabels(record.LabelEndpoint, endpoint, record.LabelCPU, cpu, record.LabelMode, mode)}
	})
	if err != nil {
		return err
	}
	net, err := x.tables(dir, "sar", func(f string) bool { return f == "network_l2_network_Mbits_sec.csv" })
	if err != nil {
		return err
	}
	for _, t := range net {
		for suffix, name := range map[string]string{"-rx": record.LinkReceived, "-tx": record.LinkSent} {
			var columns []int
			for i, c := range t.names {
				if card, ok := strings.CutSuffix(c, suffix); ok && card != "lo" {
					columns = append(columns, i)
				}
			}
			if len(columns) > 0 {
				out = append(out, t.counter(record.Series{Name: name, Unit: record.Byte, Labels: record.MakeLabels(record.LabelEndpoint, endpoint)}, columns, 1e6/8, x.t.Start))
			}
		}
	}
	x.guests[endpoint] = out
	return nil
}

// modes maps the names of mpstat and sar for a processor's modes to the collectors' names. Time
// of virtual machines is part of user.
func modes() map[string]string {
	return map[string]string{"usr": "user", "nice": "user", "guest": "user", "gnice": "user", "sys": "system", "iowait": "iowait", "irq": "irq",
		"soft": "softirq", "softirq": "softirq", "steal": "steal", "idle": "idle"}
}

// processors reads mpstat's processors, or else sar's. It sums processors for which series
// returns the same labels.
func (x *gathering) processors(dir string, series func(mode, cpu string) record.Series) ([]record.Series, error) {
	for _, tool := range []struct {
		name  string
		names func(string) []string
	}{{"mpstat", cpuFile.FindStringSubmatch}, {"sar", sarFile.FindStringSubmatch}} {
		cpus, err := x.tables(dir, tool.name, func(f string) bool { g := tool.names(f); return g != nil && g[1] != "all" })
		if err != nil {
			return nil, err
		}
		if out := x.modes(cpus, tool.names, series); out != nil {
			return out, nil
		}
	}
	return nil, nil
}

func (x *gathering) modes(cpus map[string]*table, names func(string) []string, series func(mode, cpu string) record.Series) []record.Series {
	words := modes()
	at := map[record.Labels]int{}
	var out []record.Series
	for _, f := range slices.Sorted(maps.Keys(cpus)) {
		cpu := names(f)[1]
		if len(cpu) > 1 {
			cpu = strings.TrimPrefix(cpu, "0") // sar's have two digits
		}
		columns := map[string][]int{}
		for i, c := range cpus[f].names {
			if m := words[c]; m != "" {
				columns[m] = append(columns[m], i)
			}
		}
		for _, m := range slices.Sorted(maps.Keys(columns)) {
			s := cpus[f].counter(series(m, cpu), columns[m], 0.01, x.t.Start)
			k, ok := at[s.Labels]
			if !ok {
				at[s.Labels] = len(out)
				out = append(out, s)
			} else if slices.Equal(out[k].T, s.T) {
				for j := range s.V {
					out[k].V[j] += s.V[j]
				}
			}
		}
	}
	return out
}

// devices reads iostat's devices: busy time, queue, bytes.
func (x *gathering) devices(dir string) ([]record.Series, error) {
	kinds := map[string]struct {
		name  string
		unit  record.Unit
		scale float64
	}{
		"disk_Utilization_percent.csv":   {record.DeviceBusy, record.Second, 0.01},
		"disk_Queue_Size.csv":            {record.DeviceQueue, record.Second, 1},
		"disk_Throughput_MB_per_sec.csv": {"", record.Byte, 1 << 20}, // iostat's MB are MiB
	}
	tables, err := x.tables(dir, "iostat", func(f string) bool { _, ok := kinds[f]; return ok })
	if err != nil {
		return nil, err
	}
	var out []record.Series
	for _, f := range slices.Sorted(maps.Keys(tables)) {
		for i, c := range tables[f].names {
			k := kinds[f]
			if d, ok := strings.CutSuffix(c, "-read"); ok && k.name == "" {
				k.name, c = record.DeviceRead, d
			} else if d, ok := strings.CutSuffix(c, "-write"); ok && k.name == "" {
				k.name, c = record.DeviceWrote, d
			}
			if k.name != "" {
				out = append(out, tables[f].counter(record.Series{Name: k.name, Unit: k.unit, Labels: record.MakeLabels(record.LabelDevice, imports.Clean(c))}, []int{i}, k.scale, x.t.Start))
			}
		}
	}
	return out, nil
}
