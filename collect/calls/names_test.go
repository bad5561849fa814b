package calls

import (
	"slices"
	"testing"

	"tare/analyse/structural"
	"tare/collect/internal/sysnames"
)

// TestPricedNames: the calls that the analysis of structural cost has a price for are
// among those that are counted, by the same names.
func TestPricedNames(t *testing.T) {
	counted := map[string]bool{}
	for nr := range 1024 {
		counted[sysnames.Name(nr)] = true
	}
	elsewhere := []string{"fstatat64", "stat", "lstat", "open", "time", "epoll_wait", "newfstatat"} // of one architecture or the other
	for _, k := range structural.PricedCalls() {
		if !slices.ContainsFunc(k.Of, func(name string) bool { return counted[name] }) {
			t.Errorf("no call that %s stands for is counted: %v", k.Name, k.Of)
		}
		for _, name := range k.Of {
			if !counted[name] && !slices.Contains(elsewhere, name) {
				t.Errorf("%s prices %s, and no call of that name is counted", k.Name, name)
			}
		}
	}
}
