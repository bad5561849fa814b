package published

import "strings"

// guideName is the study's word for gVisor's performance guide.
const guideName = "gvisor-guide"

// guideTable returns what all its figures share.
func guideTable() *Table {
	return &Table{Name: guideName, Title: "the gVisor performance guide", Ratio: "runsc/runc",
		Source: "https://gvisor.dev/docs/architecture_guide/performance/", Date: "about 2019",
		Notes: []string{
			"The guide measured gVisor of about 2019, on the platform ptrace unless it says otherwise; here it is the installed runsc. Its figures are set beside runsc-ptrace, or runsc-kvm where they are of KVM; other platforms stand beside them for comparison.",
			"It ran on Linux 4.19 in a virtual machine of Google Compute Engine (n1-standard-4), client and server on one each; here both ends share this host.",
			"It started containers through Docker and gave no intervals; here the runtimes are called directly.",
		}}
}

// Reasons that several figures share.
const (
	otherDocker   = "the guide's time is mostly Docker's own, the same for both; here only the runtime's work is timed"
	otherNetwork  = "the guide's network was that of the cloud, between two machines, and could be the bottleneck; here both ends are on this host, where nothing but the network stack limits"
	otherUpload   = "the guide compared runc on the host's network with runsc on a sandbox's; here all have a network namespace of their own"
	other404      = "the guide's answers were probably 404 pages: its transfer rates are far too small for a file of 100 KB; here every answer's status and length are checked"
	otherDisk     = "the guide's disk, a network disk of the cloud, was the bottleneck; here it is this host's, and caches may answer"
	otherGofer    = "gVisor opens files of the host itself since (directfs), and it has a new file system (VFS2)"
	otherTmpfs    = "gVisor's file system in memory was written anew since (VFS2)"
	otherPlatform = "the guide's native call takes 1.9 us, which is long and makes its ratio small; processors and mitigations decide that. What the platform adds to a call compares better: 36 us with ptrace"
	otherRedis    = "another version of redis (the guide's was of about 2019), and a client on the same host: on few processors the sentry's threads, the server's and the client's wait for each other"
	otherClock    = "sysbench reads the clock before and after every block, and how long that takes differs between versions of gVisor, platforms and hosts"
	otherTemplate = "another version of the language, another application of the same kind, and a client on the same host"
	otherMemory   = "gVisor's own memory differs from version to version, and with the number of processors"
	otherSmaller  = "the small study stores less than the guide's 1 GB, so the sandbox's own memory weighs more"
	otherModel    = "another model and framework of the same kind"
	otherVideo    = "another video, made here, and another version of ffmpeg"
)

// guideMapping returns which workloads of a study measure a figure. An unknown figure has an
// empty kind; a test checks that all figures are known.
func guideMapping(f Figure) mapping {
	return guideMappings()[f.Benchmark+"/"+f.Case]
}

func guideMappings() map[string]mapping {
	type params = map[string]string
	out := map[string]mapping{
		"startup/empty": {kind: "startup", params: params{"program": "true"}, response: "total", other: []string{otherDocker}},
		"startup/node":  {kind: "startup", params: params{"program": "node"}, response: "answer", other: []string{otherDocker}},
		"startup/ruby":  {kind: "startup", params: params{"program": "ruby"}, response: "answer", other: []string{otherDocker}},

		"density/empty":     {kind: "density", params: params{"program": "sleep"}, response: "memory_per_sandbox", other: []string{otherMemory}},
		"density/node":      {kind: "density", params: params{"program": "node"}, response: "memory_per_sandbox", other: []string{otherMemory}},
		"density/ruby":      {kind: "density", params: params{"program": "ruby"}, response: "memory_per_sandbox", other: []string{otherMemory}},
		"density/redis-1GB": {kind: "density", params: params{"program": "redis"}, response: "memory_per_sandbox", other: []string{otherSmaller, otherMemory}},

		"syscall/ptrace": {kind: "syscall", params: params{"call": "|getpid", "threads": "|1"}, response: "time_per_call", other: []string{otherPlatform}},
		"syscall/kvm":    {kind: "syscall", params: params{"call": "|getpid", "threads": "|1"}, response: "time_per_call", other: []string{otherPlatform}},

		"sysbench.cpu/events":        {kind: "cpu", params: params{"threads": "|1"}, response: "events"},
		"sysbench.memory/operations": {kind: "memory", params: params{"threads": "|1", "block-size": "|1MiB", "operation": "|write", "access": "|seq"}, response: "throughput", other: []string{otherClock}},

		"iperf/download": {kind: "iperf", isolate: "server", params: params{"direction": "|upload", "streams": "|1"}, response: "throughput", other: []string{otherNetwork}},
		"iperf/upload":   {kind: "iperf", isolate: "client", params: params{"direction": "|upload", "streams": "|1"}, response: "throughput", other: []string{otherUpload, otherNetwork}},

		"http.node/25 connections": {kind: "http.node", params: params{"connections": "|25", "load": "|closed"}, response: "rate", other: []string{otherTemplate}},
		"http.ruby/25 connections": {kind: "http.ruby", params: params{"connections": "|25", "load": "|closed"}, response: "rate", other: []string{otherTemplate}},

		"media.ffmpeg/transcode": {kind: "media.ffmpeg", theirs: params{"frames": "all", "preset": "veryslow", "caches": "cold"}, response: "time", other: []string{otherVideo}},
		"tensorflow/cnn":         {kind: "tensorflow", theirs: params{"steps": "2000", "batch": "|128", "caches": "cold"}, response: "time", other: []string{otherModel}},
	}
	for _, op := range []string{"GET", "SET", "LRANGE_100", "LRANGE_600", "MSET"} {
		out["redis/"+op] = mapping{kind: "redis", params: params{"pipeline": "|1"}, response: strings.ToLower(op), other: []string{otherRedis}}
	}
	for _, rw := range []string{"read", "write", "randread", "randwrite"} {
		// The guide does not give its block sizes, but its figures show them: 4 KiB at random, where
		// gVisor moves only as many bytes as its price of a call allows, and large blocks in
		// sequence, where it moves gigabytes.
		bs, cache := "1MiB", "|warm|dropped" // a file that is written first is not cached
		if strings.HasSuffix(rw, "read") {
			cache = "dropped"
		}
		if strings.HasPrefix(rw, "rand") {
			bs = "|4KiB"
		}
		out["fio.disk/"+rw] = mapping{kind: "fio", params: params{"rw": rw, "bs": bs, "target": "|data", "engine": "sync"}, theirs: params{"cache": cache, "jobs": "|1", "fsync": "|0"}, response: "throughput", other: []string{otherDisk, otherGofer}}
		out["fio.tmpfs/"+rw] = mapping{kind: "fio", params: params{"rw": rw, "bs": bs, "target": "tmpfs", "engine": "sync"}, theirs: params{"jobs": "|1", "fsync": "|0"}, response: "throughput", other: []string{otherTmpfs}}
	}
	// The size of the file is fixed, so that requests a second have the ratio of KB/s.
	for n, c := range map[string]string{"1": "1 connection", "5": "5 connections", "10": "10 connections", "|25": "25 connections"} {
		out["http.httpd/"+c] = mapping{kind: "http.httpd", params: params{"connections": n, "load": "|closed", "size": "|100KiB|100kB"}, response: "rate", other: []string{other404}}
	}
	return out
}
