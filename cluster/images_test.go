package cluster

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"tare/catalogue"
	"tare/cluster/pod"
	"tare/host/image"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/trial"
	"tare/workload"
	workloadall "tare/workload/all"
)

// TestReference: a registry's reference is used as it is; what only this machine has needs one.
func TestReference(t *testing.T) {
	apps := map[string]string{"redis": "registry/redis@sha256:1", "./app.tar": "registry/app:1"}
	for name, want := range map[string]string{
		"redis": "registry/redis@sha256:1", "./app.tar": "registry/app:1",
		"redis:7": "redis:7", "ghcr.io/me/app@sha256:2": "ghcr.io/me/app@sha256:2",
	} {
		if got, err := reference(name, apps); err != nil || got != want {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"nginx": "--app nginx=REFERENCE", "./rootfs": "--app ./rootfs=REFERENCE", "/srv/x": "tare image push /srv/x REGISTRY/x`", "host": "name an image",
	} {
		if got, err := reference(name, apps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %s, %v, want %s", name, got, err, want)
		}
	}
}

// TestReferences: all images that must be pushed are told at once, whichever of them a cell asks for first.
func TestReferences(t *testing.T) {
	const text = "study: s\nfactors: {sandbox: [process]}\nworkloads: {http.nginx: {}, redis: {}}\nstop: {fixed: 1}\nsentinel: off\n"
	loads := map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		loads[w.Name()] = w
	}
	for _, c := range []struct {
		apps       map[string]string
		say, wants string // "": nothing is said, or missing
	}{
		{nil, "images nginx, redis, wrk: the cluster must pull them", "images nginx, redis, wrk: "},
		{map[string]string{"nginx": "r/nginx:1"}, "images redis, wrk: the cluster must pull them", "images redis, wrk: "},
		{map[string]string{"nginx": "r/nginx:1", "redis": "r/redis:1"}, "", "image wrk: the cluster must pull it from a registry; push it with `tare image push wrk REGISTRY/wrk`"},
		{map[string]string{"nginx": "r/nginx:1", "redis": "r/redis:1", "wrk": "r/wrk:1"}, "", ""},
	} {
		var said []string
		s := &Site{Apps: c.apps, classes: []pod.Class{{Name: sandbox.Native}}, Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
		cat := catalogue.Of(workloadall.Workloads(), s.Kinds(), nil)
		st, err := study.Parse("s.yaml", []byte(text), cat, nil)
		if err != nil {
			t.Fatal(err)
		}
		images, err := s.references(site.Request{Study: st, Catalogue: cat}, loads)
		if err != nil || len(images) != 3 {
			t.Fatal(images, err)
		}
		if got := strings.Join(said, "|"); !strings.HasPrefix(got, c.say) || (got == "") != (c.say == "") {
			t.Errorf("%v: said %q, want %q", c.apps, got, c.say)
		}
		for name, img := range images {
			want := c.wants
			if _, given := c.apps[name]; given {
				want = ""
			}
			if !strings.HasPrefix(img.Missing, want) || (img.Missing == "") != (want == "") {
				t.Errorf("%v: image %s: %q, want %q", c.apps, name, img.Missing, want)
			}
		}
	}
}

// TestUserOfImage: a number is used, a name is asked for in the image, and root is told.
func TestUserOfImage(t *testing.T) {
	for user, want := range map[string]string{
		"": "root", "0:0": "root", "root": "root", "0": "root", "1001": "1001", "1001:0": "1001:0", "nobody": "ask nobody", "app:web": "ask app:web", "1001:web": "ask 1001:web",
		// Kubernetes takes 31 bits. In 32 bits, the third would be root.
		"2147483647": "2147483647", "2147483648": "ask 2147483648", "4294967296": "ask 4294967296", "1001:4294967296": "ask 1001:4294967296",
	} {
		img, root := described(image.Asked{Pinned: "r/app@sha256:1", User: user, Command: []string{"x"}})
		got := "root"
		switch {
		case img.User != "":
			got = "ask " + img.User
		case img.UID != nil && img.GID != nil:
			got = fmt.Sprintf("%d:%d", *img.UID, *img.GID)
		case img.UID != nil:
			got = fmt.Sprint(*img.UID)
		}
		if got != want || root != (want == "root") || img.Digest != "sha256:1" || img.Reference != "r/app@sha256:1" {
			t.Errorf("user %q: %s, want %s; root %t of %+v", user, got, want, root, img)
		}
	}
}

// TestCheckImage: what is known of an image decides whether its own command, or a program in it, can run.
func TestCheckImage(t *testing.T) {
	p := place{inside: true, images: map[string]Image{
		"gone": {Missing: "image gone: push it"}, "mute": {Image: trial.Image{Problem: "it has no command"}}, "good": {Image: trial.Image{Command: []string{"x"}}},
	}}
	for _, c := range []struct {
		demand trial.Demand
		want   string // "": it can run
	}{
		{trial.Demand{}, ""}, {trial.Demand{Image: "good", Own: true}, ""}, {trial.Demand{Image: "mute"}, ""},
		{trial.Demand{Tools: []string{"sh"}}, ""}, {trial.Demand{Tools: []string{"sh", "no-such-tool"}}, "tare's image has no no-such-tool"},
		{trial.Demand{Image: "mute", Own: true}, "has no command"}, {trial.Demand{Image: "gone"}, "image gone: push it"},
		{trial.Demand{Addresses: 9}, "neighbours: a pod has one address"},
		{trial.Demand{Settings: map[string]string{record.SettingARPLimit: record.SettingHost}}, ""},
		{trial.Demand{Settings: map[string]string{record.SettingARPLimit: "64"}}, "write arp-limit: host, or measure on a host"},
	} {
		if err := p.Check(c.demand); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.demand, err, c.want)
		}
	}
	if err := (place{}).Check(trial.Demand{Tools: []string{"no-such-tool"}}); err != nil {
		t.Errorf("outside of tare's image, its programs are not known, but: %v", err)
	}
}

// TestLookUp: an image that its registry does not have is found before anything starts; a registry that does not answer from here is
// no reason to stop.
func TestLookUp(t *testing.T) {
	h := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	at := strings.TrimPrefix(h.URL, "http://")
	_, err := (&Site{Image: at + "/tare:1"}).lookUp(t.Context(), []string{"amd64"})
	if !errors.Is(err, image.ErrAbsent) || !strings.Contains(err.Error(), "--tare-image "+at+"/tare:1: the registry "+at+" has no such image") {
		t.Errorf("no such image: %v", err)
	}
	if _, err := (&Site{Image: "NOT A REFERENCE"}).lookUp(t.Context(), []string{"amd64"}); !errors.Is(err, image.ErrReference) {
		t.Errorf("no reference: %v", err)
	}
	h.Close()
	if _, err := (&Site{Image: at + "/tare:1"}).lookUp(t.Context(), []string{"amd64"}); err != nil {
		t.Errorf("no answer: %v", err)
	}
}
