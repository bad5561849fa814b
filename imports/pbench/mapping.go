package pbench

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tare/imports"
	"tare/record"
	"tare/study"
)

// Mapping adds what Pbench does not record: the levels of each tree, and the end of each
// machine.
type Mapping struct {
	Trees     []Tree              `yaml:"trees"`
	Endpoints map[string]Endpoint `yaml:"ends"` // by role of the workload: server, client
}

// Endpoint is where an endpoint of the workload was. Machines have the names that Pbench uses below
// tools-GROUP.
type Endpoint struct {
	Host    string `yaml:"host"`    // the machine that the sandbox was on
	Guest   string `yaml:"guest"`   // the name of tools that ran inside the virtual machine
	Process string `yaml:"process"` // part of the VMM's command line, if the host has several
	Cgroup  string `yaml:"cgroup"`  // part of the name of the sandbox's cgroup
	Native  bool   `yaml:"native"`  // this endpoint was not in the sandbox
	Link    string `yaml:"link"`    // what the link can carry each way: 25Gbit/s
	link    float64
}

// Tree is one folder that the user named. Sandbox is the level that was given with
// it, "" for the configuration's name in metadata.log. Levels are of further
// factors, the same for all its trials. Quota is the CPU that the sandbox's cgroup
// may use, cores; 0: no limit, or unknown.
type Tree struct {
	Dir     string            `yaml:"dir"`
	Sandbox string            `yaml:"sandbox"`
	Levels  map[string]string `yaml:"levels"`
	Quota   float64           `yaml:"quota"`
}

// ParseMapping reads a mapping file. The folders of its trees are below that of
// the file. Errors name the file, and the line if it is not YAML.
func ParseMapping(file string, text []byte) (Mapping, error) {
	var m Mapping
	if err := imports.DecodeMapping(file, text, &m, "trees and ends"); err != nil {
		return m, err
	}
	for i := range m.Trees {
		t := &m.Trees[i]
		if t.Dir == "" {
			return m, fmt.Errorf("%s: tree %d has no dir; write the folder of one Pbench result", file, i+1)
		}
		if !filepath.IsAbs(t.Dir) {
			t.Dir = filepath.Join(filepath.Dir(file), t.Dir)
		}
		if bad := !(t.Quota >= 0 && t.Quota <= 1e6); bad {
			return m, fmt.Errorf("%s: the quota %g of %s is not a number of cores; write one above 0", file, t.Quota, t.Dir)
		}
		for _, f := range slices.Sorted(maps.Keys(t.Levels)) {
			if err := imports.CheckFactor(f); err != nil {
				return m, fmt.Errorf("%s: %w", file, err)
			}
			if f == study.FactorSandbox || f == study.FactorWorkload {
				return m, fmt.Errorf("%s: %s cannot be a level of a tree; write sandbox beside dir", file, f)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Endpoints)) {
		e := m.Endpoints[name]
		if !endpointName.MatchString(name) {
			return m, fmt.Errorf("%s: unknown end %q; write server or client, the workload's roles", file, name)
		}
		if e.Host == "" && e.Guest == "" {
			return m, fmt.Errorf("%s: the end %s has no host and no guest; write the name of a machine as it is below tools-default", file, name)
		}
		if e.Link != "" {
			v, err := rate(e.Link)
			if err != nil {
				return m, fmt.Errorf("%s: the link of %s: %w", file, name, err)
			}
			e.link = v
			m.Endpoints[name] = e
		}
	}
	return m, nil
}

var (
	endpointName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)
	rateText     = regexp.MustCompile(`^([0-9.]+) *([A-Za-z/]+)$`)
)

// rate is a text such as 25Gbit/s in bytes a second.
func rate(text string) (float64, error) {
	if g := rateText.FindStringSubmatch(strings.TrimSpace(text)); g != nil {
		v, err := strconv.ParseFloat(g[1], 64)
		if unit, scale, ok := imports.Unit(g[2]); err == nil && ok && unit == record.BytesPerSecond && v > 0 {
			return v * scale, nil
		}
	}
	return 0, fmt.Errorf("cannot read the rate %q; write one such as 25Gbit/s", text)
}
