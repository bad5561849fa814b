package kube

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// Bare returns an HTTP client with the client's credentials, and the server's address. It has no limit of requests, and
// tries nothing twice: both are for a caller that measures the server. With spread, each request in progress has its own
// connection (HTTP/1.1). So a load balancer spreads the requests over the servers, and each request needs less processor time on both sides.
// Without spread, all requests share one connection (HTTP/2) to one server.
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
