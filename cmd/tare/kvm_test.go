package main

import (
	"os"
	"path/filepath"
	"testing"

	"tare/record"
)

func TestProven(t *testing.T) {
	const makes = "opens and makes a VM; not proven by a boot"
	for name, c := range map[string]struct{ kvm, kept, want string }{
		"no trial":      {makes, "", makes},
		"failed":        {makes, `{"boot_id":"now","accelerator":"tcg","why":"x"}`, "opens and makes a VM, but no machine boots with it"},
		"booted":        {makes, `{"boot_id":"now","accelerator":"kvm"}`, "opens and makes a VM; a machine has booted with it"},
		"another boot":  {makes, `{"boot_id":"before","accelerator":"tcg"}`, makes},
		"damaged":       {makes, `{"boot_id":`, makes},
		"not even open": {"/dev/kvm is missing", `{"boot_id":"now","accelerator":"tcg"}`, "/dev/kvm is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.kept != "" {
				if err := os.WriteFile(filepath.Join(dir, "accelerator.json"), []byte(c.kept), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := proven(record.Host{KVM: c.kvm}, dir, "now").KVM; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if thisBoot() == "" {
		t.Error("no boot id")
	}
}
