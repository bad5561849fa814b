package callcount

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"tare/collect/internal/ktype"
)

// The maps and their layout.
const (
	endpointsName = "ends"   // process: 2 x end, and 1 if it counts
	countsName    = "counts" // one value a processor: MaxEndpoints x slots words
	maxTasks      = 8192     // processes alive at once

	slots    = 512       // words of an endpoint
	lostFork = slots - 2 // forks that found the map full
	lostCall = slots - 1 // calls whose number is beyond the table: of another architecture, or invalid
	// MaxEndpoints is the largest number of sandboxes that are counted separately.
	MaxEndpoints = 4
	size         = MaxEndpoints * slots * 8
)

// layout is where the kernel keeps what the programs read.
type layout struct{ tgid, signal, live int16 }

func findLayout(spec *btf.Spec) (l layout, err error) {
	for _, f := range []struct {
		to    *int16
		size  uint32
		owner string
		path  []string
	}{
		{&l.tgid, 4, "task_struct", []string{"tgid"}},
		{&l.signal, 8, "task_struct", []string{"signal"}},
		{&l.live, 4, "signal_struct", []string{"live"}},
	} {
		if *f.to, err = ktype.Offset(spec, f.owner, f.path, f.size); err != nil {
			return l, fmt.Errorf("the kernel's types: %w", err)
		}
	}
	return l, nil
}

// Offsets on the programs' stacks.
const (
	atKey   = -8
	atValue = -16
	atZero  = -24
)

// lookup leaves in R0 the address of a map's value for the 4-byte key at a stack offset, or
// 0.
func lookup(name string, at int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, 0).WithReference(name),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, at),
		asm.FnMapLookupElem.Call(),
	}
}

// add adds one to the word of an endpoint (in R7) and a number below slots (in R8). Each
// processor has its own words, and a program does not interrupt itself.
func add() asm.Instructions {
	return append(append(asm.Instructions{
		asm.StoreImm(asm.RFP, atZero, 0, asm.Word),
	}, lookup(countsName, atZero)...),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.And.Imm(asm.R7, MaxEndpoints-1),
		asm.LSh.Imm(asm.R7, 9), // x slots
		asm.And.Imm(asm.R8, slots-1),
		asm.Add.Reg(asm.R7, asm.R8),
		asm.LSh.Imm(asm.R7, 3),
		asm.Add.Reg(asm.R0, asm.R7),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord))
}

func out() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return()}
}

// counter runs at the entry of every system call of the machine (raw tracepoint
// sys_enter: registers, number).
//
//	u32 *end = lookup(&ends, get_current_pid_tgid() >> 32);
//	if (!end || !(*end & 1)) return 0;
//	u64 nr = ctx->args[1] < SLOTS - 2 ? ctx->args[1] : LOST;
//	counts[0][*end >> 1][nr]++;
func counter() asm.Instructions {
	ins := append(current(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.And.Imm(asm.R1, 1),
		asm.JEq.Imm(asm.R1, 0, "out"),
		asm.RSh.Imm(asm.R7, 1),
		asm.LoadMem(asm.R8, asm.R6, 8, asm.DWord),
		asm.JLT.Imm(asm.R8, lostFork, "known"),
		asm.Mov.Imm(asm.R8, lostCall),
		asm.Mov.Reg(asm.R8, asm.R8).WithSymbol("known"))
	return append(append(ins, add()...), out()...)
}

// forker runs at every fork, before the child does (raw tracepoint
// sched_process_fork: parent, child). A child belongs to its parent's end, and it
// counts even if the parent, tare's agent, does not.
//
//	u32 *end = lookup(&ends, get_current_pid_tgid() >> 32);
//	if (!end) return 0;
//	u32 child = ctx->args[1]->tgid;
//	if (child == tgid) return 0; // a thread
//	u32 value = *end | 1;
//	if (update(&ends, child, value)) counts[0][*end >> 1][LOST]++;
func forker(l layout) asm.Instructions {
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.StoreMem(asm.RFP, atKey, asm.R0, asm.Word),
	}
	ins = append(ins, lookup(endpointsName, atKey)...)
	ins = append(ins,
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, 8, asm.DWord),
		asm.Add.Imm(asm.R3, int32(l.tgid)),
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, atKey),
		asm.Mov.Imm(asm.R2, 4),
		asm.FnProbeReadKernel.Call(),
		asm.JNE.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.RFP, atKey, asm.Word),
		asm.JEq.Reg(asm.R1, asm.R9, "out"),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Or.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, atValue, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, 0).WithReference(endpointsName),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atKey),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, atValue),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.RSh.Imm(asm.R7, 1),
		asm.Mov.Imm(asm.R8, lostFork))
	return append(append(ins, add()...), out()...)
}

// current looks the process that runs up in the endpoints, as lookup does, and keeps the context in R6.
func current() asm.Instructions {
	return append(asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.RFP, atKey, asm.R0, asm.Word),
	}, lookup(endpointsName, atKey)...)
}

// leaver runs when a thread ends (raw tracepoint sched_process_exit: the task), and removes
// the process with its last thread, because its number may be used again.
//
//	if (ctx->args[0]->signal->live == 0) delete(&ends, get_current_pid_tgid() >> 32);
func leaver(l layout) asm.Instructions {
	read := func(size int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, atValue),
			asm.Mov.Imm(asm.R2, size),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, "out"),
		}
	}
	ins := append(current(),
		asm.JEq.Imm(asm.R0, 0, "out"), // not followed, as nearly all processes
		asm.LoadMem(asm.R3, asm.R6, 0, asm.DWord),
		asm.Add.Imm(asm.R3, int32(l.signal)))
	ins = append(ins, read(8)...)
	ins = append(ins,
		asm.LoadMem(asm.R3, asm.RFP, atValue, asm.DWord),
		asm.Add.Imm(asm.R3, int32(l.live)))
	ins = append(ins, read(4)...)
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.RFP, atValue, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "out"),
		asm.LoadMapPtr(asm.R1, 0).WithReference(endpointsName),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, atKey),
		asm.FnMapDeleteElem.Call())
	return append(ins, out()...)
}

// spec returns the maps and programs. The kernel provides the helper that reads its memory
// only to programs under the GPL, so these few instructions are under the GPL too.
func spec(l layout) *ebpf.CollectionSpec {
	program := func(name string, ins asm.Instructions) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: "tare_" + name, Type: ebpf.RawTracepoint, License: "Dual MIT/GPL", Instructions: ins}
	}
	return &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			endpointsName: {Name: "tare_ends", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxTasks},
			countsName:    {Name: "tare_counts", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: size, MaxEntries: 1},
		},
		Programs: map[string]*ebpf.ProgramSpec{
			"sys_enter":          program("sys_enter", counter()),
			"sched_process_fork": program("fork", forker(l)),
			"sched_process_exit": program("exit", leaver(l)),
		},
	}
}
