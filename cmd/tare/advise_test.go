package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/analyse/advice"
	"tare/host/rootfs"
	"tare/param"
	"tare/study"
	workloadall "tare/workload/all"
)

// TestAdviceKnowsTare: what the rules say of workloads, factors and gVisor's flags is so.
func TestAdviceKnowsTare(t *testing.T) {
	params := make(map[string][]param.Param)
	for _, w := range workloadall.Workloads() {
		params[w.Name()] = w.Params()
	}
	for _, l := range advice.Loads() {
		known, ok := params[l.Kind]
		if !ok {
			t.Errorf("there is no workload %s", l.Kind)
		}
		for _, name := range l.Vary {
			if _, ok := param.Find(known, name); !ok {
				t.Errorf("%s has no parameter %s to vary", l.Kind, name)
			}
		}
		if l.Workers == "" {
			continue
		}
		if p, ok := param.Find(known, l.Workers); !ok || p.Default != strconv.Itoa(l.Unless) {
			t.Errorf("%s: the workers are %s, %d unless said; the workload has %+v", l.Kind, l.Workers, l.Unless, p)
		}
	}
	all, _, err := kinds(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	factors := map[string][]string{study.FactorSandbox: nil}
	for _, p := range study.Factors() {
		factors[p.Name] = p.Words
	}
	var names []string
	for _, k := range all {
		names = append(names, k.Name())
		for _, p := range k.Params() {
			factors[p.Name] = append(factors[p.Name], p.Words...)
		}
	}
	for _, r := range advice.Rules() {
		for _, s := range r.Set {
			words, ok := factors[s.Factor]
			if !ok {
				t.Errorf("%s: there is no factor %s", r.Name, s.Factor)
			}
			if s.Factor == "rootfs" && !slices.Contains(words, s.To) {
				t.Errorf("%s: %s is never %s", r.Name, s.Factor, s.To)
			}
			if platform, ok := strings.CutPrefix(s.To, "platform="); ok && !slices.Contains(names, "runsc-"+platform) {
				t.Errorf("%s: there is no sandbox runsc-%s", r.Name, platform)
			}
		}
	}
	runsc, ok := rootfs.Lookup("runsc")
	if !ok {
		t.Skip("runsc is not here: its flags are not looked at")
	}
	flags, _ := exec.Command(runsc, "flags").CombinedOutput()
	key := regexp.MustCompile(`(?m)^  ([\w-]+) = `)
	n := 0
	for _, r := range advice.Rules() {
		for _, p := range r.Patches {
			if !strings.Contains(p.File, "runsc.toml") {
				continue
			}
			for _, m := range key.FindAllStringSubmatch(p.Text, -1) {
				n++
				if !regexp.MustCompile(`(?m)^\s+-` + regexp.QuoteMeta(m[1]) + `\b`).Match(flags) {
					t.Errorf("%s: runsc has no flag %s", r.Name, m[1])
				}
			}
		}
	}
	if n == 0 {
		t.Error("no flag of runsc was looked at")
	}
}
