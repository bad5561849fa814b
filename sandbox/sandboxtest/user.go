package sandboxtest

import (
	"bytes"
	"strings"
	"testing"

	"tare/sandbox"
)

// user: commands run as the user and in the directory that they ask for, without root's
// capabilities; they can open their standard output by its name, and are found in their own PATH.
func (s *suite) user(t *testing.T) {
	inst, _ := s.any(t)
	whoami := sandbox.Command{
		Args: []string{"tare", "internal", "try", "whoami"}, Dir: "/usr", Env: []string{"PATH=/nowhere:/", "GIVEN=1", "GIVEN=2"},
		User: sandbox.User{UID: 1234, GID: 2345, Groups: []uint32{3456}},
	}
	const want = "1234 2345 [3456] /usr 2 true\n"
	var out, said bytes.Buffer
	c := whoami
	c.Stdout, c.Stderr = &out, &said
	if exit, err := inst.Exec(t.Context(), c); err != nil || exit.Code != 0 || out.String() != want {
		t.Errorf("Exec: printed %q and %q, want %q; exit %+v, %v", out.String(), said.String(), want, exit, err)
	}
	gated := c
	out.Reset()
	gated.Gate = sandbox.NewGate(1)
	if exit, err := inst.Exec(t.Context(), gated); err != nil || exit.Code != 0 || out.String() != want {
		t.Errorf("at a gate: printed %q and %q, want %q; exit %+v, %v", out.String(), said.String(), want, exit, err)
	}
	for problem, c := range map[string]sandbox.Command{
		"no working directory /no/such": {Args: []string{"/tare-hello"}, Dir: "/no/such", User: whoami.User},
		"/no/such-program":              {Args: []string{"/no/such-program"}},
		"cannot find the program":       {Args: []string{"no-such-program"}},
		"PATH=/nowhere":                 {Args: []string{"tare"}, Env: []string{"PATH=/nowhere"}},
	} {
		said.Reset()
		c.Stderr = &said
		if exit, err := inst.Exec(t.Context(), c); err != nil || exit.Code != 127 || !strings.Contains(said.String(), problem) {
			t.Errorf("%s: says %q, exit %+v, %v; want code 127", problem, said.String(), exit, err)
		}
	}
	l, ok := s.kind.(sandbox.Launcher)
	if !ok {
		return
	}
	for _, mode := range s.modes() {
		c := whoami
		out.Reset()
		c.Stdout = &out
		got, err := l.Launch(t.Context(), s.spec(t), c, mode)
		if err != nil || got.Exit.Code != 0 || out.String() != want {
			t.Errorf("Launch %s: printed %q, want %q; exit %+v, %v", mode, out.String(), want, got.Exit, err)
		}
	}
}
