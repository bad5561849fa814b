package network

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLinkName(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "0123456789", "01234567890", strings.Repeat("x", 200), strings.Repeat("x", 199)} {
		link := linkName(name)
		if len(link) > 15 || !strings.HasPrefix(link, Prefix) || seen[link] != "" {
			t.Errorf("linkName(%q) = %q, also of %q", name, link, seen[link])
		}
		seen[link] = name
	}
	if linkName("0") == bridgeLink {
		t.Error("a sandbox's link has the bridge's name")
	}
}

// TestOnThread would see the process's first thread in a namespace: Go does not
// end that one.
func TestOnThread(t *testing.T) {
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			err := onThread(func() error {
				if unix.Gettid() == os.Getpid() {
					return errors.New("on the first thread")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
