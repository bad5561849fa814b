package taskiter

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"tare/collect/internal/ktype"
)

// layout is where the running kernel keeps what the program reads: byte
// offsets, from the kernel's own description of its types.
type layout struct {
	meta, task                                   int16 // in struct bpf_iter__task
	seq                                          int16 // in struct bpf_iter_meta
	pid, tgid, leader, start, comm, runtime, lag int16 // in struct task_struct
}

// commLen is TASK_COMM_LEN of include/linux/sched.h, the final zero included.
const commLen = 16

// findLayout looks the fields up. They have these names since Linux 5.8, which has the
// iterator. Without one of them the kernel cannot be used.
func findLayout(spec *btf.Spec) (layout, error) {
	var l layout
	var err error
	for _, f := range []struct {
		to    *int16
		size  uint32
		owner string
		path  []string
	}{
		{&l.meta, 8, "bpf_iter__task", []string{"meta"}},
		{&l.task, 8, "bpf_iter__task", []string{"task"}},
		{&l.seq, 8, "bpf_iter_meta", []string{"seq"}},
		{&l.pid, 4, "task_struct", []string{"pid"}},
		{&l.tgid, 4, "task_struct", []string{"tgid"}},
		{&l.leader, 8, "task_struct", []string{"group_leader"}},
		{&l.start, 8, "task_struct", []string{"start_time"}},
		{&l.comm, commLen, "task_struct", []string{"comm"}},
		{&l.runtime, 8, "task_struct", []string{"se", "sum_exec_runtime"}},
		{&l.lag, 8, "task_struct", []string{"sched_info", "run_delay"}},
	} {
		if *f.to, err = ktype.Offset(spec, f.owner, f.path, f.size); err != nil {
			return l, err
		}
	}
	return l, nil
}

// The maps and their layout.
const (
	setName  = "pids" // setWords words of bits, then the salt
	seenName = "seen" // slots words
	slots    = 16384  // a thread's slot is its number modulo this; two threads in one slot cost only time
	atSalt   = setWords * 8
)

// program writes one record for every thread whose process is in the set: a short one if
// the thread has not run since the last walk, as most have not. A task_struct takes 150
// cache lines, which are rarely in the cache; the short record needs three of them, the full
// one six. The kernel calls the program once for each thread, and once at the end without a
// thread (Documentation/bpf/bpf_iterators.rst).
//
//	if (!task) return 0;
//	if (!(set[task->tgid / 64 % words] >> task->tgid % 64 & 1)) return 0;
//	struct record r = {task->pid, task->tgid, task->se.sum_exec_runtime};
//	u64 *before = &seen[r.tid % slots], now = r.run + salt;
//	if (*before == now) {
//		r.tid |= SHORT;
//		bpf_seq_write(meta->seq, &r, 8);
//		return 0;
//	}
//	*before = now;
//	r.wait = task->sched_info.run_delay; ...
//	bpf_seq_write(meta->seq, &r, sizeof(r));
//	return 0;
func program(l layout) asm.Instructions {
	const stack = -recordSize
	write := func(size int32) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, asm.R7, l.meta, asm.DWord),
			asm.LoadMem(asm.R1, asm.R1, l.seq, asm.DWord),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, stack),
			asm.Mov.Imm(asm.R3, size),
			asm.FnSeqWrite.Call(),
		}
	}
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R7, asm.R1),
		asm.LoadMem(asm.R6, asm.R7, l.task, asm.DWord),
		asm.JEq.Imm(asm.R6, 0, "out"),
		asm.LoadMem(asm.R1, asm.R6, l.tgid, asm.Word),
		// The word of the set: tgid / 64 * 8 bytes, within its size.
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 3),
		asm.And.Imm(asm.R2, setWords*8-8),
		asm.LoadMapValue(asm.R3, 0, 0).WithReference(setName),
		asm.Mov.Reg(asm.R4, asm.R3),
		asm.Add.Reg(asm.R3, asm.R2),
		asm.LoadMem(asm.R3, asm.R3, 0, asm.DWord),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, 63),
		asm.RSh.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R3, 1),
		asm.JEq.Imm(asm.R3, 0, "out"),

		asm.StoreMem(asm.RFP, stack+atTgid, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, l.pid, asm.Word),
		asm.LoadMem(asm.R5, asm.R6, l.runtime, asm.DWord),
		asm.LoadMem(asm.R4, asm.R4, atSalt, asm.DWord),
		asm.Add.Reg(asm.R4, asm.R5),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, slots-1),
		asm.LSh.Imm(asm.R2, 3),
		asm.LoadMapValue(asm.R3, 0, 0).WithReference(seenName),
		asm.Add.Reg(asm.R3, asm.R2),
		asm.LoadMem(asm.R2, asm.R3, 0, asm.DWord),
		asm.JNE.Reg(asm.R2, asm.R4, "full"),
		asm.LoadImm(asm.R2, short, asm.DWord),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.RFP, stack+atTid, asm.R1, asm.Word),
	}
	ins = append(ins, write(shortSize)...)
	ins = append(ins,
		asm.Ja.Label("out"),
		asm.StoreMem(asm.R3, 0, asm.R4, asm.DWord).WithSymbol("full"),
		asm.StoreMem(asm.RFP, stack+atTid, asm.R1, asm.Word),
		asm.StoreMem(asm.RFP, stack+atRun, asm.R5, asm.DWord))
	for _, f := range []struct{ from, to int16 }{
		{l.lag, atWait}, {l.start, atStart}, {l.comm, atComm}, {l.comm + 8, atComm + 8},
	} {
		ins = append(ins,
			asm.LoadMem(asm.R1, asm.R6, f.from, asm.DWord),
			asm.StoreMem(asm.RFP, stack+f.to, asm.R1, asm.DWord))
	}
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.R6, l.leader, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, l.start, asm.DWord),
		asm.StoreMem(asm.RFP, stack+atBegun, asm.R1, asm.DWord))
	ins = append(ins, write(recordSize)...)
	return append(ins,
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return())
}
