package control

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// TestFetch: only an agent that is expected gets the tree, and a tree that breaks off is an error.
func TestFetch(t *testing.T) {
	h, at, agent, _, _ := study(t)
	broken := false
	h.Tree = func(w io.Writer) error {
		_, err := io.WriteString(w, "tree")
		if broken {
			err = errors.New("broken")
		}
		return err
	}
	token, arrived, forget := h.Expect("vm")
	defer forget()
	get := func(id Identity, path string) (int, string, error) {
		c, err := id.config()
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		defer client.CloseIdleConnections()
		r, err := http.NewRequestWithContext(within(t), http.MethodGet, "https://"+at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), errors.Join(err, resp.Body.Close())
	}
	if code, body, err := get(agent, "/vm/"+token); code != http.StatusOK || body != "tree" || err != nil {
		t.Errorf("%d %q, %v", code, body, err)
	}
	for _, path := range []string{"/vm/guess", "/other/" + token} {
		if code, body, err := get(agent, path); code != http.StatusForbidden || body != "" || err != nil {
			t.Errorf("%s: %d %q, %v", path, code, body, err)
		}
	}
	_, other, _, err := NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	other.CA = agent.CA
	if code, _, err := get(other, "/vm/"+token); err == nil {
		t.Errorf("an agent of another study gets %d", code)
	}
	broken = true
	if _, _, err := get(agent, "/vm/"+token); err == nil {
		t.Error("a tree that breaks off passes for a whole one")
	}
	c, err := Dial(within(t), agent, at, "vm", token, "0.0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	there := <-arrived
	if there.Addr.IsValid() {
		t.Error(there.Addr)
	}
	echo(t, c, there)
}
