package servers

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFind: each listens where it is asked, and what its command names is in the
// recipe of its image.
func TestFind(t *testing.T) {
	for _, program := range []string{"node", "ruby", "redis"} {
		s, ok := Find(program)
		if !ok || s.Image != program {
			t.Errorf("%s: %+v, %v", program, s, ok)
			continue
		}
		if !slices.Contains(s.Args, strconv.Itoa(s.Probe.Port)) {
			t.Errorf("%s: it is asked on port %d and started by %q", program, s.Probe.Port, s.Args)
		}
		recipe, err := os.ReadFile(filepath.Join("..", "..", "images", s.Image, "image.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if program != "redis" && !strings.Contains(string(recipe), s.Args[1]) {
			t.Errorf("%s: its recipe has no %s", program, s.Args[1])
		}
	}
	if s, ok := Find("tare"); ok {
		t.Errorf("there is a server %+v", s)
	}
}

// TestMore: further arguments come last, and none is left in another's.
func TestMore(t *testing.T) {
	a, b := Node(1, "x"), Node(2, "y")
	if got := strings.Join(a.Args, " ") + ", " + strings.Join(b.Args, " "); got != "/usr/bin/node /app/server.js 1 x, /usr/bin/node /app/server.js 2 y" {
		t.Error(got)
	}
	if r := Redis(3, "--save", "9"); !slices.Equal(r.Args[len(r.Args)-2:], []string{"--save", "9"}) || r.Probe.Port != 3 {
		t.Errorf("%+v", r)
	}
}
