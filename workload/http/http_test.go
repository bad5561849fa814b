package httpload

import (
	"testing"

	"tare/param"
	"tare/workload/workloadtest"
)

// suite is a workload with what its client really printed: on a two-core virtual
// machine, Linux 6.18, without isolation, by the programs of the images.
type suite struct {
	load  Workload
	cases []workloadtest.Case
}

func suites() []suite {
	one := func(name string, v param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: v,
			Outputs: map[string]string{"client": "testdata/" + name + ".json"}}
	}
	no := func(name string, v param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: v, Refused: true}
	}
	return []suite{
		{Node(), []workloadtest.Case{
			one("node-closed", param.Values{"warmup": "500ms", "duration": "100ms"}),
			one("node-open", param.Values{"warmup": "500ms", "duration": "1s", "load": "open", "rate": "100"}),
			one("node-overload", param.Values{"warmup": "500ms", "duration": "500ms", "load": "open", "rate": "50000"}),
			no("open without a rate", param.Values{"load": "open"}),
			no("a rate in the closed loop", param.Values{"rate": "100"}),
			no("wrk would leave connections out", param.Values{"threads": "2"}),
			no("nothing to send", param.Values{"load": "open", "rate": "1", "duration": "500ms"}),
		}},
		{Ruby(), []workloadtest.Case{one("ruby-closed", param.Values{"warmup": "500ms", "duration": "100ms"})}},
		{Httpd(), []workloadtest.Case{
			one("httpd-closed", param.Values{"connections": "10", "warmup": "300ms", "duration": "100ms"}),
			one("httpd-prefork", param.Values{"connections": "5", "workers": "5", "mpm": "prefork", "warmup": "300ms", "duration": "100ms"}),
			no("more connections than processes", param.Values{"mpm": "prefork", "workers": "4", "connections": "5"}),
			no("more connections than threads", param.Values{"server-threads": "25", "connections": "25"}),
		}},
		{Nginx(), []workloadtest.Case{
			one("nginx-closed", param.Values{"warmup": "300ms", "duration": "100ms"}),
			one("nginx-every", param.Values{"connections": "5", "check": "every", "warmup": "300ms", "duration": "100ms"}),
		}},
	}
}

func TestContract(t *testing.T) {
	for _, s := range suites() {
		t.Run(s.load.Name(), func(t *testing.T) { workloadtest.Run(t, s.load, s.cases...) })
	}
}

func FuzzNode(f *testing.F)  { workloadtest.Fuzz(f, Node(), suites()[0].cases...) }
func FuzzRuby(f *testing.F)  { workloadtest.Fuzz(f, Ruby(), suites()[1].cases...) }
func FuzzHttpd(f *testing.F) { workloadtest.Fuzz(f, Httpd(), suites()[2].cases...) }
func FuzzNginx(f *testing.F) { workloadtest.Fuzz(f, Nginx(), suites()[3].cases...) }
