package study

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
)

// head is a good beginning; the wrong line comes after it, in line 4.
const head = `study: x
factors: {sandbox: [process, runc, vm], cpu-limit: [none, 1, 2]}
workloads: {stream: {kind: net}, cpu: {}}
`

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name, src, want string
		sets            []string
	}{
		{name: "empty", src: "", want: "t.yaml: the file is empty; begin with `study: NAME`"},
		{name: "comment only", src: "# nothing\n", want: "t.yaml: the file is empty; begin with `study: NAME`"},
		{name: "list", src: "- a\n", want: "t.yaml:1:1: the file is not a mapping of keys; begin with `study: NAME`"},
		{name: "not yaml", src: "study: [a\nb: c\n", want: ""},
		{name: "two documents", src: head + "---\nstudy: y\n", want: "t.yaml:4:1: a second YAML document starts here; put each study into a file of its own"},
		{name: "alias", src: head + "about: &a b\nbaseline: *a\n", want: "t.yaml:4:8: anchor &a is not allowed; remove it, and write the value out where it is used\n" +
			"t.yaml:5:11: alias *a is not allowed; write the value out"},
		{name: "tag", src: head + "seed: !!int 5\n", want: "t.yaml:4:7: tag !!int is not allowed; remove it"},
		{name: "duplicate key", src: head + "seed: 1\nseed: 2\n", want: `t.yaml:5:1: key "seed" is in line 4 already; remove one`},
		{name: "unknown key", src: head + "sed: 1\n", want: `t.yaml:4:1: unknown key "sed" in a study; did you mean "seed"?`},
		{name: "long key", src: head + strings.Repeat("k", 200) + ": 1\n", want: `t.yaml:4:1: a key of a study is 200 bytes long; write a name`},
		{name: "no name", src: strings.Replace(head, "study: x", "about: x", 1), want: "t.yaml:1:1: the study has no name; begin with `study: NAME`"},
		{name: "bad name", src: strings.Replace(head, "study: x", "study: ../x", 1), want: `t.yaml:1:8: "../x" is not a name; write letters, digits, - and _, at most 63, beginning with a letter or digit`},
		{name: "no workloads", src: "study: x\nfactors: {sandbox: [process]}\n", want: "t.yaml:1:1: the study has no workloads; write workloads: {NAME: {kind: KIND}} with one of cpu, net, noop"},
		{name: "no sandboxes", src: "study: x\nworkloads: {cpu: {}}\n", want: "t.yaml:1:1: there are no sandboxes to compare; write factors: {sandbox: [process, runc]}"},
		{name: "seed", src: head + "seed: -1\n", want: `t.yaml:4:7: seed "-1" is not a number; write a whole number from 0`},
		{name: "turns", src: head + "turns: 0\n", want: `t.yaml:4:8: turns "0" is not possible; write auto, or a whole number from 1 to 100`},
		{name: "retries", src: head + "retries: many\n", want: `t.yaml:4:10: retries "many" is not possible; write a whole number from 0 to 100`},
		{name: "limits", src: head + "limits: ignore\n", want: `t.yaml:4:9: limits "ignore" is not possible; write mark or void`},
		{name: "timeout unit", src: head + "timeout: 60\n", want: `t.yaml:4:10: timeout "60" is not a time; write a number and a unit, such as 2s, 500ms or 4m`},
		{name: "timeout short", src: head + "timeout: 1ms\n", want: `t.yaml:4:10: timeout "1ms" is too short; write at least 1s`},
		{name: "no value", src: head + "timeout:\n", want: `t.yaml:4:9: timeout has no value; write a value, or remove the key`},
		{name: "not one value", src: head + "seed: [1]\n", want: `t.yaml:4:7: seed is a list or a mapping; write one value`},
		{name: "stop both", src: head + "stop: {fixed: 5, looks: [3]}\n", want: `t.yaml:4:18: looks has no effect together with fixed (line 4); remove looks or fixed`},
		{name: "looks fall", src: head + "stop: {looks: [3, 2]}\n", want: `t.yaml:4:19: look 2 does not come after 3; write increasing numbers of blocks, 2 or more, such as [3, 4, 6, 8]`},
		{name: "no looks", src: head + "stop: {looks: []}\n", want: `t.yaml:4:8: looks has no numbers of blocks; write looks: [3, 4, 6, 8]`},
		{name: "confidence", src: head + "stop: {confidence: 95}\n", want: `t.yaml:4:20: confidence "95" is not possible; write a value between 50% and 100%`},
		{name: "width NaN", src: head + "stop: {width: NaN}\n", want: `t.yaml:4:15: width "NaN" is not possible; write a value between 0% and 100%`},
		{name: "budget and fixed", src: head + "stop: {fixed: 5}\nbudget: {blocks: 3}\n", want: `t.yaml:5:18: the budget of 3 blocks ends before the fixed 5; write blocks: 5, or a smaller fixed`},
		{name: "budget and looks", src: head + "budget: {blocks: 2}\n", want: `t.yaml:4:18: the budget of 2 blocks ends before the first look at 3; write blocks: 3 or more`},
		{name: "collector", src: head + "collect: {use: [proc, cgruop]}\n", want: `t.yaml:4:23: there is no collector "cgruop"; did you mean "cgroup"?`},
		{name: "rate", src: head + "collect: {rate: 10}\n", want: `t.yaml:4:17: "10" is not a rate; write a rate from 0.1Hz to 1000Hz, such as 10Hz`},

		{name: "kind", src: strings.Replace(head, "kind: net", "kind: nte", 1), want: `t.yaml:3:28: there is no kind of workload "nte"; did you mean "net"?`},
		{name: "no kind", src: strings.Replace(head, "cpu: {}", "load: {}", 1), want: `t.yaml:3:34: workload "load" has no kind; write kind: and one of cpu, net, noop`},
		{name: "parameter", src: strings.Replace(head, "cpu: {}", "cpu: {thread: 1}", 1), want: `t.yaml:3:40: workload kind cpu has no parameter "thread"; did you mean "threads"?`},
		{name: "parameter range", src: strings.Replace(head, "cpu: {}", "cpu: {threads: 0}", 1), want: `t.yaml:3:49: threads = 0 is out of range; write a value from 1 to 1024`},
		{name: "parameter type", src: strings.Replace(head, "cpu: {}", "cpu: {threads: 1.5}", 1), want: `t.yaml:3:49: threads: "1.5" is not a whole number; write a whole number from 1 to 1024`},
		{name: "parameter unit", src: strings.Replace(head, "cpu: {}", "cpu: {duration: 2}", 1), want: `t.yaml:3:50: duration: "2" is not a time; write a number and a unit, such as 2s, 500ms or 4m`},
		{name: "word", src: strings.Replace(head, "kind: net", "kind: net, mode: steam", 1), want: `t.yaml:3:39: "steam" is not a level of mode; did you mean "stream"?`},
		{name: "response", src: strings.Replace(head, "kind: net", "kind: net, responses: [latency]", 1), want: `t.yaml:3:45: workload "stream" has no response "latency"; write one of throughput, messages`},
		{name: "response of some cells", src: strings.Replace(head, "kind: net", "kind: net, mode: [stream, rr], responses: [throughput]", 1), want: `t.yaml:3:65: workload "stream" with mode=rr has no response "throughput"; write one of latency_p50, latency, rate`},
		{name: "combination", src: strings.Replace(head, "kind: net", "kind: net, rate: [0, 100]", 1), want: `t.yaml:3:13: workload "stream" with rate=100 is not possible: mode stream has no rate; remove rate or write mode: rr`},

		{name: "factor", src: strings.Replace(head, "cpu-limit", "cpu-limits", 1), want: `t.yaml:2:41: there is no factor "cpu-limits"; did you mean "cpu-limit"?`},
		{name: "workload as factor", src: strings.Replace(head, "cpu-limit", "workload", 1), want: `t.yaml:2:41: the levels of "workload" are not written here; list the workloads in the section workloads`},
		{name: "sandbox", src: strings.Replace(head, "runc", "rucn", 1), want: `t.yaml:2:30: "rucn" is not a level of sandbox; did you mean "runc"?`},
		{name: "sandbox family", src: strings.Replace(head, "runc", "runsc", 1), want: `t.yaml:2:30: "runsc" is not a level of sandbox; did you mean one of runsc-systrap?`},
		{name: "sandbox oci", src: strings.Replace(head, "runc", "oci", 1), want: `t.yaml:2:30: "oci" is not a level of sandbox; write one of crun, process, runc, runsc-systrap, vm`},
		{name: "factor of no workload", src: strings.Replace(head, "cpu-limit: [none, 1, 2]", "threads: [1]", 1) + "exclude: [{workload: cpu}]\n", want: `t.yaml:2:41: the factor "threads" applies to no cell; remove it, or change what it applies to`},
		{name: "parameter of no workload", src: "study: x\nfactors: {sandbox: [process], threads: [1]}\nworkloads: {net: {}}\n", want: `t.yaml:2:31: no workload of this study has the parameter "threads"; remove it, or add a workload of kind cpu`},
		{name: "parameter said by all", src: "study: x\nfactors: {sandbox: [process], threads: [1]}\nworkloads: {cpu: {threads: 2}}\n", want: `t.yaml:2:31: every workload with the parameter "threads" sets it itself; remove it here or there`},
		{name: "parameter of no sandbox", src: "study: x\nfactors: {sandbox: [process], vcpus: [1]}\nworkloads: {cpu: {}}\n", want: `t.yaml:2:31: no sandbox of this study has the parameter "vcpus"; remove it, or add one of vm`},
		{name: "no levels", src: strings.Replace(head, "[none, 1, 2]", "[]", 1), want: `t.yaml:2:52: cpu-limit has no levels; write a list: [a, b]`},
		{name: "level twice", src: strings.Replace(head, "[none, 1, 2]", "[1, 2, 1]", 1), want: `t.yaml:2:59: level "1" of cpu-limit is there twice; remove one`},
		{name: "thousandths twice", src: strings.Replace(head, "[none, 1, 2]", "[0.5, 500m]", 1), want: `t.yaml:2:58: level "0.5" of cpu-limit is there twice; remove one`},
		{name: "thousandths beside others", src: strings.Replace(head, "[none, 1, 2]", "[0.5, 1]", 1) + "compare: cpu-limit\nbaseline: 500m\nexclude: [{sandbox: vm, cpu-limit: 1000m}]\n", want: ""},
		{name: "level spelt twice", src: strings.Replace(head, "cpu-limit: [none, 1, 2]", "message: [1KiB, 1024B]", 1), want: `t.yaml:2:57: level "1024B" of message is the same as "1KiB"; remove one`},
		{name: "cpus of one end", src: "study: x\nfactors: {sandbox: [process, runc], cpus: [any, apart]}\nworkloads: {cpu: {}}\n", want: `t.yaml:2:37: cpus: any and apart are the same to a workload with one end, and the study has no other; write one of them, or processors such as 0-1`},
		{name: "isolate nothing", src: "study: x\nfactors: {sandbox: [process], isolate: [server]}\nworkloads: {cpu: {}}\n", want: `t.yaml:2:31: the factor "isolate" applies to no cell; remove it, or change what it applies to`},
		{name: "limit unit", src: strings.Replace(head, "cpu-limit: [none, 1, 2]", "memory-limit: [1X]", 1), want: `t.yaml:2:56: memory-limit: "1X" is not a size; write a number and a unit, such as 64KiB, 4k or 1GiB`},

		{name: "own sandbox", src: head + "sandboxes:\n  runc: {runtime: x}\n  k: {kind: pod, runtim: y}\n  m: {kind: vm}\n", want: `t.yaml:5:3: sandbox "runc" already exists; choose another name` + "\n" +
			`t.yaml:6:13: "pod" is not a kind that a study can define; write oci or vm`},
		{name: "own sandbox without runtime", src: head + "sandboxes:\n  k: {}\n", want: `t.yaml:5:3: sandbox "k": runtime is missing; write the path of one`},
		{name: "key of another base", src: head + "sandboxes:\n  k: {runtime: x, firmware: uefi}\n", want: `t.yaml:5:19: unknown key "firmware" in sandbox k; write one of kind, runtime, args`},
		{name: "factor as a key", src: strings.Replace(head, "cpu-limit: [none, 1, 2]", "vcpus: [1]", 1) + "sandboxes:\n  k: {kind: vm, vcpus: 2}\n", want: `t.yaml:5:17: unknown key "vcpus" in sandbox k; it is a factor, so write factors: {vcpus: [...]}`},
		{name: "parameter of a wrong definition alone", src: "study: x\nfactors: {sandbox: [process, k], vcpus: [1]}\nworkloads: {cpu: {}}\nsandboxes:\n  k: {kind: vm, runtim: x}\n", want: `t.yaml:5:17: unknown key "runtim" in sandbox k; did you mean "runtime"?`},
		{name: "key of a base", src: head + "sandboxes:\n  k: {kind: vm, runtim: x}\n", want: `t.yaml:5:17: unknown key "runtim" in sandbox k; did you mean "runtime"?`},
		{name: "word of a base", src: head + "sandboxes:\n  k: {kind: vm, firmware: bios}\n", want: `t.yaml:5:27: "bios" is not a level of firmware; write one of none, uefi`},
		{name: "level of a wrong definition", src: strings.Replace(head, "runc", "k", 1) + "sandboxes:\n  k: {kind: vm, runtim: x}\n", want: `t.yaml:5:17: unknown key "runtim" in sandbox k; did you mean "runtime"?`},
		{name: "argument in lines", src: head + "sandboxes:\n  k: {runtime: x, args: [\"a\\nb\"]}\n", want: `t.yaml:5:26: an element of args has control characters in it; write one line of plain text`},

		{name: "zip lengths", src: head + "zip: [[sandbox, cpu-limit]]\n", want: ""},
		{name: "zip unequal", src: strings.Replace(head, "none, 1, 2", "none, 1", 1) + "zip: [[sandbox, cpu-limit]]\n", want: `t.yaml:4:7: factors that move together need the same number of levels, but sandbox has 3, cpu-limit has 2; give them equally many`},
		{name: "zip alone", src: head + "zip: [[cpu-limit]]\n", want: `t.yaml:4:7: this entry of zip has fewer than two factors; name at least two factors: [cpu-limit, memory-limit]`},
		{name: "zip flat", src: head + "zip: [cpu-limit, sandbox]\n", want: `t.yaml:4:6: zip is not a list of lists; write a list of lists: [[cpu-limit, memory-limit]]`},
		{name: "zip unknown", src: head + "zip: [[cpu-limit, sandbx]]\n", want: `t.yaml:4:19: "sandbx" is not a factor of this study; did you mean "sandbox"?`},
		{name: "zip workload", src: head + "zip: [[cpu-limit, workload]]\n", want: `t.yaml:4:19: the factor workload cannot move with others; give each workload its levels in its own section`},

		{name: "include nothing new", src: head + "include: [{sandbox: runc, cpu-limit: 1}]\n", want: `t.yaml:4:11: this entry of include adds no cell; correct its levels or remove it`},
		{name: "include wrong workload", src: head + "include: [{workload: cpu, message: 1B}]\n", want: `t.yaml:4:27: nothing that this entry selects has the parameter "message"; remove it, or name a workload or sandbox that has it`},
		{name: "include half a zip", src: strings.Replace(head, "2]", "2], memory-limit: [none, 1G, 2G]", 1) + "zip: [[cpu-limit, memory-limit]]\ninclude: [{cpu-limit: 4}]\n", want: `t.yaml:5:11: this entry of include names cpu-limit, which moves together with memory-limit; name memory-limit as well`},
		{name: "exclude nothing", src: head + "exclude: [{workload: cpu, sandbox: vm}, {workload: cpu, sandbox: crun}]\n", want: `t.yaml:4:66: "crun" is not a level of sandbox in this study; did you mean "runc"?`},
		{name: "exclude never both", src: strings.Replace(head, "}\n", ", vcpus: [1, 2]}\n", 1) + "exclude: [{sandbox: runc, vcpus: 1}]\n", want: `t.yaml:4:11: this entry of exclude matches no cell; correct its levels or remove it`},
		{name: "exclude all", src: head + "exclude: [{sandbox: [process, runc, vm]}]\n", want: `t.yaml:4:1: no cell is left; exclude less`},
		{name: "exclude what is compared", src: head + "exclude: [{sandbox: [runc, vm]}]\n", want: `t.yaml:4:1: exclude leaves nothing beside process; exclude less, or compare another level with the baseline`},
		{name: "exclude the baseline", src: head + "exclude: [{sandbox: process}]\n", want: `t.yaml:4:1: exclude leaves nothing beside process; exclude less, or compare another level with the baseline`},
		{name: "exclude unknown", src: head + "exclude: [{sandbx: runc}]\n", want: `t.yaml:4:12: "sandbx" is not a factor of this study; did you mean "sandbox"?`},
		{name: "exclude empty", src: head + "exclude: [{}]\n", want: `t.yaml:4:11: an entry of exclude is empty; name factors and levels: {sandbox: runc}`},

		{name: "apply unknown", src: head + "apply: {cpu-limt: {sandbox: runc}}\n", want: `t.yaml:4:9: "cpu-limt" is not a factor of this study; did you mean "cpu-limit"?`},
		{name: "apply level", src: head + "apply: {cpu-limit: {sandbox: rnc}}\n", want: `t.yaml:4:30: "rnc" is not a level of sandbox in this study; did you mean "runc"?`},
		{name: "apply circle", src: strings.Replace(head, "2]", "2], cpus: [any]", 1) + "apply: {cpu-limit: {cpus: any}, cpus: {cpu-limit: 1}}\n", want: `t.yaml:4:1: the conditions of cpu-limit, cpus depend on each other in a circle; remove one of the conditions`},
		{name: "apply itself", src: head + "apply: {cpu-limit: {cpu-limit: 1}}\n", want: `t.yaml:4:21: "cpu-limit" is not another factor of this study; write one of workload, sandbox`},

		{name: "compare", src: head + "compare: sandbx\n", want: `t.yaml:4:10: "sandbx" is not a factor of this study; did you mean "sandbox"?`},
		{name: "compare what is absent", src: head + "compare: vcpus\n", want: `t.yaml:4:10: "vcpus" is not a factor of this study; give it levels in factors or in a workload, or write one of sandbox, cpu-limit`},
		{name: "compare workloads", src: head + "compare: workload\n", want: `t.yaml:4:10: workloads are not compared with each other; compare one of the workloads' parameters`},
		{name: "compare what some lack", src: strings.Replace(head, "2]", "2], message: [1B]", 1) + "compare: message\n", want: `t.yaml:3:34: workload "cpu" has cells without a level of the compared factor message; remove the workload, or compare another factor`},
		{name: "baseline", src: head + "baseline: crun\n", want: `t.yaml:4:11: the baseline "crun" is not a level of sandbox; write baseline: and one of process, runc, vm, or add it to the levels`},
		{name: "no baseline", src: strings.Replace(head, "process, ", "", 1), want: `t.yaml:2:11: the baseline "process" is not a level of sandbox; write baseline: and one of runc, vm, or add it to the levels`},

		{name: "set nonsense", src: head, sets: []string{"runc"}, want: `--set "runc": no factor and level; write factor=level,level`},
		{name: "set plural", src: head, sets: []string{"workloads=net"}, want: `--set "workloads=net": there is no factor "workloads"; did you mean "workload"?`},
		{name: "set unknown", src: head, sets: []string{"sandbx=runc"}, want: `--set "sandbx=runc": there is no factor "sandbx"; did you mean "sandbox"?`},
		{name: "set unknown setting", src: head, sets: []string{"budget.tim=1m"}, want: `--set "budget.tim=1m": "budget.tim" is neither a setting nor a workload of this study and its parameter; did you mean "budget.time"?`},
		{name: "set section", src: head, sets: []string{"budget=1m"}, want: `--set "budget=1m": "budget" has several settings; write one of budget.blocks, budget.time`},
		{name: "set workload", src: head, sets: []string{"workload=strem"}, want: `--set "workload=strem": there is no workload "strem" in this study; did you mean "stream"?`},
		{name: "set level", src: head, sets: []string{"sandbox=process,rucn"}, want: `--set "sandbox=process,rucn": "rucn" is not a level of sandbox; did you mean "runc"?`},
		{name: "set parameter", src: head, sets: []string{"stream.messge=1B"}, want: `--set "stream.messge=1B": workload kind net has no parameter "messge"; did you mean "message"?`},
		{name: "set value", src: head, sets: []string{"cpu.threads=none"}, want: `--set "cpu.threads=none": threads: "none" is not a whole number; write a whole number from 1 to 1024`},
		{name: "set without baseline", src: head, sets: []string{"sandbox=runc"}, want: `--set "sandbox=runc": the baseline "process" is not a level of sandbox; write baseline: and one of runc, or add it to the levels`},
		{name: "set what applies nowhere", src: head, sets: []string{"workload=cpu", "isolate=both"}, want: `--set "isolate=both": the factor "isolate" applies to no cell; remove it, or change what it applies to`},
		{name: "set what nothing has", src: head, sets: []string{"workload=cpu", "message=1B"}, want: `--set "message=1B": no workload of this study has the parameter "message"; remove it, or add a workload of kind net`},
		{name: "set budget", src: head, sets: []string{"budget.time=5"}, want: `--set "budget.time=5": time "5" is not a time; write a number and a unit, such as 2s, 500ms or 4m`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse("t.yaml", []byte(tt.src), testCatalogue(), tt.sets)
			switch tt.name {
			case "not yaml": // the library's words, which may change
				if err == nil || !strings.HasPrefix(err.Error(), "t.yaml:1:1: not YAML: ") {
					t.Errorf("error %v", err)
				}
				return
			}
			got := ""
			if err != nil {
				got = err.Error()
				var one *Error
				if s != nil || !errors.As(err, &one) {
					t.Errorf("study %v, error %T", s, err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCPUsOfOneEnd: one level that is not of processors is how a workload with one end runs anyway.
func TestCPUsOfOneEnd(t *testing.T) {
	for _, level := range []string{AnyCPU, ApartCPUs} {
		for _, c := range []struct {
			src  string
			sets []string
		}{
			{"study: x\nfactors: {sandbox: [process, runc], cpus: [" + level + "]}\nworkloads: {cpu: {}}\n", nil},
			{head, []string{"workload=cpu", "cpus=" + level}},
		} {
			s, err := Parse("t.yaml", []byte(c.src), testCatalogue(), c.sets)
			if err != nil {
				t.Errorf("%s, %q: %v", level, c.sets, err)
				continue
			}
			for _, cell := range s.Strata[0].Cells {
				if v, has := cell.Get(FactorCPUs); has {
					t.Errorf("%s has processors: %s", cell, v)
				}
			}
		}
	}
}

func TestErrorsBounded(t *testing.T) {
	var src strings.Builder
	src.WriteString(head)
	for i := range 50 {
		fmt.Fprintf(&src, "key%d: 1\n", i)
	}
	_, err := Parse("t.yaml", []byte(src.String()), testCatalogue(), nil)
	var es Errors
	if !errors.As(err, &es) || len(es) != maxErrors+1 {
		t.Fatalf("%d errors: %v", len(es), err)
	}
	if got, want := es[maxErrors].Error(), "t.yaml: and 30 more; correct the ones above first"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
}

func TestTooLarge(t *testing.T) {
	_, err := Parse("t.yaml", []byte(head+strings.Repeat("#", MaxSource)), testCatalogue(), nil)
	if want := fmt.Sprintf("t.yaml: the file has %d bytes; a study file has at most 1 MiB", MaxSource+len(head)); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestManyCellsAreRefused: a study with too many cells costs little. A file of 1 MiB with
// 990,000 cells took 876 MB.
func TestManyCellsAreRefused(t *testing.T) {
	workloads := "study: x\nfactors: {sandbox: [process], cpu-limit: [" + numbers(500) + "]}\nworkloads:\n"
	for i := range 500 {
		workloads += fmt.Sprintf("  w%d: {kind: cpu}\n", i)
	}
	for name, c := range map[string]struct{ src, want string }{
		"one workload": {manyCells(1000, 1001), `t.yaml:3:13: the study has more than 200000 cells (including those that exclude removes): workload "cpu" has 1001 of cpu-limit x 1000 of threads; use fewer levels, zip, or split the study`},
		"many":         {workloads, `t.yaml:404:3: the study has more than 200000 cells (including those that exclude removes): workload "w400" has 500 of cpu-limit; use fewer levels, zip, or split the study`},
		"include": {"study: x\nfactors: {sandbox: [process]}\nworkloads: {cpu: {}}\ninclude: [{cpu-limit: [" + numbers(1000) + "], threads: [" + numbers(1000) + "]}]\n",
			`t.yaml:4:11: the study has more than 200000 cells (including those that exclude removes): workload "cpu" has 1000 of cpu-limit x 1000 of threads; use fewer levels, zip, or split the study`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("t.yaml", []byte(c.src), testCatalogue(), nil)
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 50<<20 {
				t.Errorf("it took %d bytes to refuse %d", n, len(c.src))
			}
		})
	}
}

// numbers are 1 to n, with commas.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d, ", i+1)
	}
	return b.String()
}

func manyCells(threads, limits int) string {
	return "study: x\nfactors: {sandbox: [process], cpu-limit: [" + numbers(limits) + "]}\nworkloads: {cpu: {threads: [" + numbers(threads) + "]}}\n"
}

// TestReplaced: a parameter that replaces another one is refused together with it, where it is written; its default and a study of
// results are not.
func TestReplaced(t *testing.T) {
	cat := testCatalogue()
	cat.Workloads["fill"] = WorkloadInfo{Params: []param.Param{
		{Name: "size", Type: param.Size, Default: "64MiB", Help: "of a file"},
		{Name: "free", Type: param.Int, Default: "0", Max: 90, Replaces: "size", Help: "percent of the free space"},
	}}
	const what = "free = 50 replaces size, but the study also sets size = 1GiB; remove size, or write free: 0"
	for _, tt := range []struct{ factors, own, set, want string }{
		{"", ", size: 1GiB, free: 50", "", `t.yaml:4:37: workload "a" is not possible: ` + what},
		{"", ", size: 1GiB, free: [0, 50]", "", `t.yaml:4:41: workload "a" with free=50 is not possible: ` + what},
		{", size: [1GiB, 2GiB]", ", free: 50", "", `t.yaml:4:25: workload "a" with size=1GiB is not possible: ` + what},
		{"", ", size: 1GiB", "a.free=50", `--set "a.free=50": workload "a" is not possible: ` + what},
		{"", ", size: 1GiB, free: 0", "", ""},
		{"", ", free: 50", "", ""},
	} {
		src := "study: x\nfactors: {sandbox: [process, runc]" + tt.factors + "}\nworkloads:\n  a: {kind: fill" + tt.own + "}\n"
		var sets []string
		if tt.set != "" {
			sets = []string{tt.set}
		}
		if _, err := Parse("t.yaml", []byte(src), cat, sets); (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s\n%v\nwant %s", src, err, tt.want)
		}
		cat := cat
		cat.Stored = true
		if _, err := Parse("t.yaml", []byte(src), cat, sets); err != nil {
			t.Errorf("of results: %v", err)
		}
	}
}

// TestValueIsBlamed: an error about one parameter is shown where its value is written,
// whoever gives it.
func TestValueIsBlamed(t *testing.T) {
	cat := testCatalogue()
	cat.Workloads["vary"] = WorkloadInfo{
		Params: []param.Param{{Name: "vars", Type: param.String, Help: "values"}},
		Check: func(v param.Values) error {
			if v.Str("vars") != "n=1" {
				return fmt.Errorf("workload vary: %w", &param.ValueError{Param: "vars", Err: errors.New("vars: no such variable; write n")})
			}
			return nil
		},
	}
	file := func(factors, own string) string {
		return "study: x\nfactors: {sandbox: [process, runc]" + factors + "}\nworkloads:\n  a: {kind: vary" + own + "}\n"
	}
	for _, tt := range []struct{ src, set, want string }{
		{file("", ", vars: z=3"), "", `t.yaml:4:25: workload "a" is not possible: workload vary: vars: no such variable; write n`},
		{file("", ", vars: [n=1, z=3]"), "", `t.yaml:4:31: workload "a" with vars=z=3 is not possible: workload vary: vars: no such variable; write n`},
		{file(", vars: [n=1, z=3]", ""), "", `t.yaml:2:49: workload "a" with vars=z=3 is not possible: workload vary: vars: no such variable; write n`},
		{file("", ""), "", `t.yaml:4:3: workload "a" is not possible: workload vary: vars: no such variable; write n`},
		{file("", ", vars: n=1"), "a.vars=z=3", `--set "a.vars=z=3": workload "a" is not possible: workload vary: vars: no such variable; write n`},
	} {
		var sets []string
		if tt.set != "" {
			sets = []string{tt.set}
		}
		if _, err := Parse("t.yaml", []byte(tt.src), cat, sets); err == nil || err.Error() != tt.want {
			t.Errorf("%s\n%v\nwant %s", tt.src, err, tt.want)
		}
	}
}
