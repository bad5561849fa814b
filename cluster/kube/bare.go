package kube

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// Bare returns an HTTP client with the client's credentials, and the server's address. It has no limit of requests, and
// tries nothing twice: both are for whoever measures the server.
func (c *Client) Bare() (*http.Client, string, error) {
	cfg := rest.CopyConfig(c.config)
	cfg.RateLimiter = nil
	plain, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("cannot reach the API server: %w", err)
	}
	return plain, cfg.Host, nil
}
