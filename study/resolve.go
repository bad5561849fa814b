package study

import (
	"fmt"
	"maps"

	"tare/param"
	"tare/record"
)

// Resolve puts a cell of this study in terms of what run has to do. The error
// is for a cell of another study, or a catalogue that has changed since Parse.
func (s *Study) Resolve(cat Catalogue, cell record.Cell) (Resolved, error) {
	label, _ := cell.Get(FactorWorkload)
	var load *Workload
	for i := range s.Workloads {
		if s.Workloads[i].Label == label {
			load = &s.Workloads[i]
			break
		}
	}
	if s.Sentinel != nil && cell.Key() == s.Sentinel.Cell.Key() {
		load = &s.Sentinel.Workload
	}
	if load == nil {
		return Resolved{}, fmt.Errorf("cell %s: the study has no workload %q; was the study file changed?", cell, label)
	}
	out, err := s.resolve(cat, *load, cell)
	if err == nil {
		out.Victim, err = s.victimOf(cat, cell)
	}
	return out, err
}

// resolve is Resolve for a cell of a workload, without a victim.
func (s *Study) resolve(cat Catalogue, load Workload, cell record.Cell) (Resolved, error) {
	out := Resolved{Workload: load, Sandbox: cat.Native, Settings: settingsIn(cell)}
	info, ok := cat.Workloads[out.Workload.Kind]
	if !ok {
		return Resolved{}, fmt.Errorf("cell %s: this version of tare has no workload %q", cell, out.Workload.Kind)
	}
	if name, ok := cell.Get(FactorSandbox); ok {
		out.Sandbox = name
	}
	// With one end there is nothing to choose: whatever the role is called, it
	// is in the sandbox.
	out.Isolate = Both
	if info.Endpoints > 1 {
		out.Isolate = isolateDefault
	}
	values := make(param.Values, len(info.Params))
	maps.Copy(values, out.Workload.Params)
	box := s.sandbox(cat, out.Sandbox)
	options := param.Values{}
	for _, l := range cell {
		switch l.Factor {
		case FactorWorkload, FactorSandbox, FactorVictimSandbox, FactorCounting, record.SettingMigrationCost, record.SettingARPLimit:
		case FactorBeside:
			out.Alone = l.Value == BesideNothing
		case FactorIsolate:
			out.Isolate = l.Value
		case FactorCPULimit:
			out.CPULimit = param.Values{"": l.Value}.Float("")
		case FactorMemoryLimit:
			out.MemoryLimit = param.Values{"": l.Value}.Size("")
		case FactorCPUs:
			switch l.Value {
			case AnyCPU:
			case ApartCPUs:
				out.Apart = info.Endpoints > 1
			default:
				out.CPUs = l.Value
			}
		case FactorCopies:
			out.Copies = param.Values{"": l.Value}.Int("")
		case FactorCopiesOn:
			out.Spread = l.Value == CopiesSpread
		case FactorLinkDelay:
			out.LinkDelay = param.Values{"": l.Value}.Duration("")
		case FactorLinkRate:
			out.LinkRate = param.Values{"": l.Value}.Rate("")
		case FactorLinkPath:
			if l.Value != pathBridge {
				out.LinkPath = l.Value
			}
		default:
			if _, ok := param.Find(info.Params, l.Factor); ok {
				values[l.Factor] = l.Value
			} else {
				options[l.Factor] = l.Value
			}
		}
	}
	var err error
	if out.Params, err = param.Fill(info.Params, values); err != nil {
		return Resolved{}, fmt.Errorf("cell %s: workload %s: %w", cell, out.Workload.Kind, err)
	}
	s.embed(out.Params)
	if info.Responses != nil {
		out.Workload.Responses = having(out.Workload.Responses, s.responsesIn(info, out.Params, cell))
	}
	if out.Options, err = param.Fill(box.Params, options); err != nil {
		return Resolved{}, fmt.Errorf("cell %s: sandbox %s: %w", cell, out.Sandbox, err)
	}
	out.Traits = box.traits(out.Options)
	return out, nil
}

// settingsIn are a cell's levels of the host's settings; nil if it has none.
func settingsIn(cell record.Cell) map[string]string {
	var out map[string]string
	for _, name := range []string{record.SettingMigrationCost, record.SettingARPLimit} {
		if level, ok := cell.Get(name); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = level
		}
	}
	return out
}
