package section

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/record"
)

// TestFairCopies: each side's copies are told with their nodes, once where both are alike.
func TestFairCopies(t *testing.T) {
	one := &analyse.Copies{Count: 1, AtOnce: 1, Most: 1, On: []string{"n1"}}
	for _, tt := range []struct {
		own, base *analyse.Copies
		want      string
	}{
		{&analyse.Copies{Count: 4, AtOnce: 2, Most: 2, On: []string{"n1", "n2"}}, one,
			"There were 4 copies on 2 nodes in each trial, 2 on each (n1 and n2), in the baseline 1 copy on 1 node in each trial (n1)"},
		{&analyse.Copies{Count: 3, AtOnce: 2, Most: 2, On: []string{"n1", "n2", "n3"}}, &analyse.Copies{Count: 3, AtOnce: 2, Most: 2, On: []string{"n1", "n2", "n3"}},
			"Both sides had 3 copies on 2 nodes in each trial, at most 2 on one (n1, n2 and n3)"},
		{&analyse.Copies{Count: 2, AtOnce: 2, Most: 1, On: []string{"n1", "n2"}}, &analyse.Copies{Count: 2, AtOnce: 1, Most: 2, On: []string{"n1", "n2"}},
			"There were 2 copies on 2 nodes in each trial, 1 on each (n1 and n2), in the baseline 2 copies on 1 node in each trial (n1 or n2)"},
		{&analyse.Copies{Count: 2, AtOnce: 2, Most: 1, On: []string{"n1", "n2"}, Shared: true}, nil,
			"There were 2 copies on 2 nodes in each trial, 1 on each (n1 and n2), in the baseline copies on unknown nodes; some of these nodes share a machine, so spreading the copies adds no hardware"},
		{&analyse.Copies{Count: 2, AtOnce: 1, Most: 2, On: []string{"n1"}}, nil, "There were 2 copies on 1 node in each trial (n1), in the baseline copies on unknown nodes"},
	} {
		if got := copies(&analyse.Certificate{Copies: tt.own, BaseCopies: tt.base}); got != tt.want {
			t.Errorf("%q\nwant %q", got, tt.want)
		}
	}
}

// TestFairNames: a line about some of the comparisons names them, or their workloads, where they are few.
func TestFairNames(t *testing.T) {
	for name, tt := range map[string]struct {
		known, silent []string // the workloads of comparisons with and without a certificate
		want          []string
	}{
		"few":  {[]string{"fio", "net"}, []string{"startup"}, []string{"In 2 comparisons (fio in sandbox=runc, net in sandbox=runc) both", "In 1 comparison (startup in sandbox=runc), the"}},
		"many": {[]string{"a", "b", "c", "d"}, []string{"s", "s", "s", "s"}, []string{"In 4 comparisons both", "In 4 comparisons (of s), the"}},
		"all":  {nil, []string{"s", "s"}, []string{"In 2 comparisons, the"}},
	} {
		r := &analyse.Result{Compare: "sandbox", OnCluster: true}
		for i, w := range slices.Concat(tt.known, tt.silent) {
			shared := record.Cell{{Factor: "workload", Value: w}, {Factor: "n", Value: fmt.Sprint(i)}}
			if name == "few" {
				shared = shared[:1]
			}
			c := analyse.Comparison{Workload: w, Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=runc", First: true}
			c.Level.N, c.Base.N = 3, 3
			r.Compared = append(r.Compared, c)
			if i < len(tt.known) {
				r.Certificates = append(r.Certificates, analyse.Certificate{Stratum: c.Stratum, Treatment: c.Treatment, Same: []string{"node"}})
			}
		}
		slices.SortFunc(r.Certificates, func(x, y analyse.Certificate) int { return strings.Compare(x.Stratum, y.Stratum) })
		var got []string
		for _, b := range Fair(r).Blocks {
			for n, item := range b.List {
				if len(tt.want) > n && strings.HasPrefix(item.Text, tt.want[n]) {
					got = append(got, tt.want[n])
				} else {
					got = append(got, item.Text)
				}
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
