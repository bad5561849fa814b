package kube

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// Bare returns an HTTP client with the client's credentials, and the server's address. It has no limit of requests, and
// tries nothing twice: both are for whoever measures the server. With spread, it has a connection for each request at a time
// (HTTP/1.1), so that a load balancer spreads them over the servers, and each takes less of both sides' processors. Else all
// go over one (HTTP/2), to one server.
func (c *Client) Bare(spread bool) (*http.Client, string, error) {
	cfg := rest.CopyConfig(c.config)
	cfg.RateLimiter = nil
	if spread {
		cfg.NextProtos = []string{"http/1.1"}
	}
	plain, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("cannot reach the API server: %w", err)
	}
	return plain, cfg.Host, nil
}
