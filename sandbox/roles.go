package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"tare/record"
)

// Thread is what a thread's role is told from.
type Thread struct {
	Pid, Tid int
	Comm     string   // of the thread
	Args     []string // of the process
}

// ThreadRoles tells the roles of a sandbox's threads: the first rule that matches a thread
// gives its role. A thread that no rule matches has the role workload. The rules are data, not
// a function, so that a collector in another process can have them.
type ThreadRoles []RoleRule

// RoleRule gives a role to each thread that has all of what the rule says. A rule without
// conditions matches every thread.
type RoleRule struct {
	Role    record.ThreadRole `json:"role"`
	Comm    string            `json:"comm,omitempty"`    // the thread's name begins with it
	Program string            `json:"program,omitempty"` // base name of the process's first argument
	Args    []string          `json:"args,omitempty"`    // the arguments after the first one begin with these
}

// AgentRule gives the agent in a sandbox the role harness.
func AgentRule() RoleRule {
	return RoleRule{Role: record.RoleHarness, Program: "tare", Args: []string{"internal", "agent"}}
}

// Of returns the role of a thread.
func (r ThreadRoles) Of(t Thread) record.ThreadRole {
	for i := range r {
		if r[i].matches(t) {
			return r[i].Role
		}
	}
	return record.RoleWorkload
}

func (r *RoleRule) matches(t Thread) bool {
	if r.Program != "" && (len(t.Args) == 0 || filepath.Base(t.Args[0]) != r.Program) {
		return false
	}
	n := len(r.Args)
	return strings.HasPrefix(t.Comm, r.Comm) && (n == 0 || len(t.Args) > n && slices.Equal(t.Args[1:n+1], r.Args))
}
