package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/docker/cli/cli/config"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// keychain has the credentials of `docker login`, then those of `podman login`. The library looks
// at podman's only if there are none of docker's, and not where root's are.
func keychain() authn.Keychain {
	chain := []authn.Keychain{authn.DefaultKeychain}
	for _, f := range podmanFiles() {
		chain = append(chain, authFile(f))
	}
	return authn.NewMultiKeychain(chain...)
}

// podmanFiles are where podman looks, in this order: containers-auth.json(5).
func podmanFiles() []string {
	if f := os.Getenv("REGISTRY_AUTH_FILE"); f != "" {
		return []string{f}
	}
	files := []string{fmt.Sprintf("/run/containers/%d/auth.json", os.Getuid())}
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		files[0] = filepath.Join(d, "containers/auth.json")
	}
	if d, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(d, "containers/auth.json"))
	}
	return files
}

// authFile is a file of podman's, whose form is docker's.
type authFile string

// Resolve is of authn.Keychain.
func (f authFile) Resolve(of authn.Resource) (authn.Authenticator, error) {
	file, err := os.Open(string(f))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return authn.Anonymous, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	conf, err := config.LoadFromReader(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s; log in again: %w", string(f), err)
	}
	keys := []string{of.String(), of.RegistryStr()}
	if of.RegistryStr() == name.DefaultRegistry {
		keys = append(keys, "docker.io", authn.DefaultAuthKey)
	}
	for _, k := range keys {
		c, err := conf.GetAuthConfig(k)
		if err != nil {
			return nil, err
		}
		if c.Username != "" || c.Auth != "" || c.IdentityToken != "" || c.RegistryToken != "" {
			return authn.FromConfig(authn.AuthConfig{Username: c.Username, Password: c.Password, Auth: c.Auth, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken}), nil
		}
	}
	return authn.Anonymous, nil
}
