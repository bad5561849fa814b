package causes

import (
	"math"
	"testing"
)

// TestClosed holds the queueing arithmetic against what is known in closed form.
func TestClosed(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	delay, server := station{1e-4, 0}, station{1e-5, 1}
	one, _ := closed(1, []station{delay, server}, 1)
	near("one operation waits for nobody", one, 1/1.1e-4)
	two, _ := closed(2, []station{{1e-5, 1}, {1e-5, 1}}, 1) // n / (n + 1) of a server's rate
	near("two equal servers", two, 1e5*2/3)
	many, _ := closed(100, []station{delay, server}, 1)
	near("a full server", many, 1e5)
	// The machine repairman: 3 customers, think 2e-5, service 1e-5: exact by its chain.
	p := []float64{1, 1.5, 1.5, 0.75}
	sum := p[0] + p[1] + p[2] + p[3]
	three, _ := closed(3, []station{{2e-5, 0}, server}, 1)
	near("three customers of one server", three, 1e5*(1-p[0]/sum))
	door, _ := limited(3, 1, []station{server}, 2e-5, 1)
	near("a door of one before it", door, 1e5*(1-p[0]/sum))
}
