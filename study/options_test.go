package study

import (
	"errors"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
)

// TestStoredStudies: a study of results is read where a sandbox or collector of it is not known, and where a
// combination of options is refused since.
func TestStoredStudies(t *testing.T) {
	cat := testCatalogue()
	vm := cat.Sandboxes["vm"]
	vm.CheckOptions = func(param.Values) error { return errors.New("vcpus: never") }
	cat.Sandboxes["vm"] = vm
	src := []byte("study: s\nfactors: {sandbox: [process, vm, chroot], vcpus: [1]}\nworkloads: {cpu: {}}\ncollect: {use: [forks]}\n")
	_, err := Parse("x.yaml", src, cat, nil)
	for _, want := range []string{`"chroot"`, `"forks"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("before there are results, %s is accepted: %v", want, err)
		}
	}
	const elsewhere = "claim-size=1GiB,2GiB" // a factor of a sandbox that is not known here
	if _, err := Parse("x.yaml", src, cat, []string{elsewhere}); err == nil || !strings.Contains(err.Error(), `there is no factor "claim-size"`) {
		t.Errorf("before there are results, the override is accepted: %v", err)
	}
	cat.Stored = true
	named := cat
	named.Others = func(string) []param.Param {
		return []param.Param{{Name: "claim-size", Type: param.Size, Default: "10GiB", Min: 1, Max: 1 << 50, Help: "of each claim"}}
	}
	if s, err := Parse("x.yaml", src, named, []string{elsewhere}); err != nil || len(s.Strata[0].Cells) < 3 {
		t.Errorf("an override of stored results: %v", err)
	}
	s, err := Parse("x.yaml", src, cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(s.Strata[0].Cells); got != 3 {
		t.Errorf("%d cells, want 3", got)
	}
	if res, err := s.Resolve(cat, s.Strata[0].Cells[2]); err != nil || res.Sandbox != "chroot" || res.Traits.Family != "" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestOptionsRefused: what a kind starts on no host is refused where the study has it.
func TestOptionsRefused(t *testing.T) {
	cat := testCatalogue()
	vm := is(record.Traits{},
		param.Param{Name: "start", Type: param.Enum, Default: "boot", Words: []string{"boot", "snapshot"}, Help: "how"},
		param.Param{Name: "rootfs", Type: param.Enum, Default: "virtiofs", Words: []string{"virtiofs", "block"}, Help: "files"})
	vm.CheckOptions = func(v param.Values) error {
		if v.Str("start") == "snapshot" && v.Str("rootfs") != "block" {
			return errors.New("start = snapshot needs rootfs = block")
		}
		return nil
	}
	cat.Sandboxes["vm"] = vm
	const text = `study: s
factors:
  sandbox: [process, vm]
  start: [boot, snapshot]
  ROOTFS
workloads: {cpu: {}}
`
	for rootfs, want := range map[string]string{
		"":                          `x.yaml:4:17: sandbox "vm" is not possible: start = snapshot needs rootfs = block; change it, or exclude the combination`,
		"rootfs: [virtiofs, block]": `x.yaml:4:17: `,
		"rootfs: [block]":           "",
		"rootfs: [virtiofs, block]\nexclude: [{start: snapshot, rootfs: virtiofs}]": "",
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(text, "ROOTFS", rootfs, 1)), cat, nil)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", rootfs, err, want)
		}
	}
}
