package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	hostimage "tare/host/image"
	"tare/host/network"
	"tare/workload/ingress/routes"
)

const (
	controllerProgram = "haproxy-ingress-controller"
	controllerImage   = "haproxy-ingress" // and the folder of its recipe
	ingressSpace      = "lab-ingress"
	routesFile        = "studies/objects/ingress-lab.yaml" // the routes that the lab's controller serves, and a study loads
	routeWithin       = 5 * time.Second
)

// controllerRecipe keeps the recipe of the controller's image: what HAProxy Ingress has in its own image, with the
// distribution's HAProxy in place of Alpine Linux's.
func controllerRecipe(ctx context.Context, dir, to string) error {
	source, err := sourceOf(ctx, dir, "github.com/jcmoraisjr/haproxy-ingress")
	if err != nil {
		return err
	}
	to = filepath.Join(to, controllerImage)
	if err := os.RemoveAll(to); err != nil { // CopyFS replaces nothing
		return err
	}
	if err := os.CopyFS(filepath.Join(to, "etc"), os.DirFS(filepath.Join(source, "rootfs", "etc"))); err != nil {
		return err
	}
	for _, name := range []string{hostimage.RecipeFile, "auth-request.lua"} {
		b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a file of this project
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil { //nolint:gosec // one of two fixed names
			return err
		}
	}
	return nil
}

// ingress adds the controller, a server behind it and the routes to it, and waits until each route answers. It may run on a cluster
// that has them.
func (l *lab) ingress(ctx context.Context) error {
	controller, err := l.pushController(ctx)
	if err != nil {
		return err
	}
	if _, err := l.makeImages(ctx); err != nil {
		return err
	}
	site, err := l.pushProbe(ctx, "site")
	if err != nil {
		return err
	}
	objects, err := render("ingress.yaml", facts{Controller: controller, Pulled: site, Name: nodes()[0].name})
	if err != nil {
		return err
	}
	if _, err := l.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := l.kubectl(ctx, nil, "apply", "-f", routesFile); err != nil {
		return err
	}
	if _, err := l.kubectl(ctx, nil, "wait", "-n", ingressSpace, "--for=condition=Available", "--timeout", nodeWithin.String(), "deployment", "--all"); err != nil {
		events, _ := l.kubectl(ctx, nil, "get", "events", "-n", ingressSpace, "--field-selector", "type=Warning", "-o", `jsonpath={range .items[*]}{.message}; {end}`)
		return fmt.Errorf("%w; %s", err, events)
	}
	said := ""
	err = until(ctx, podWithin, nil, func(ctx context.Context) (err error) {
		said, err = l.routesAnswer(ctx)
		return err
	})
	if err == nil {
		l.done("ingress controller: %s", said)
	}
	return err
}

// pushController makes the controller's image and sends it to the lab's registry. It returns the reference by digest.
func (l *lab) pushController(ctx context.Context) (string, error) {
	// A recipe takes files of its own folder only.
	err := os.Link(l.program(controllerProgram), l.program(filepath.Join(controllerImage, controllerProgram)))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	b := &hostimage.Builder{Cache: l.program("images"), Recipes: os.DirFS(l.bin)}
	tree, release, err := b.Use(ctx, controllerImage)
	if err != nil {
		return "", err
	}
	defer release()
	return b.Push(ctx, tree, l.registryName()+"/lab/"+controllerImage+":1", hostimage.PushOptions{})
}

// hasIngress says whether the controller has been added.
func (l *lab) hasIngress(ctx context.Context) (bool, error) {
	out, err := l.kubectl(ctx, nil, "get", "namespace", ingressSpace, "--ignore-not-found", "-o", "name")
	return out != "", err
}

// routesAnswer asks the controller for each route, as a client among the nodes.
func (l *lab) routesAnswer(ctx context.Context) (string, error) {
	text, err := os.ReadFile(routesFile)
	if err != nil {
		return "", err
	}
	list, err := routes.Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", routesFile, err)
	}
	c := http.Client{Timeout: routeWithin, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the controller's and the server's certificates are their own
		DialContext: func(ctx context.Context, kind, address string) (to net.Conn, err error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			err = network.Enter(namespace(control), func() (err error) {
				to, err = (&net.Dialer{}).DialContext(ctx, kind, net.JoinHostPort(nodes()[0].address, port))
				return err
			})
			return to, err
		},
	}}
	for _, t := range list.Targets {
		if err := answers(ctx, &c, t.URL()); err != nil {
			return "", fmt.Errorf("the route %s does not answer: %w", t.Name, err)
		}
	}
	return strconv.Itoa(len(list.Targets)) + " routes answer at " + nodes()[0].address, nil
}

func answers(ctx context.Context, c *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	a, err := c.Do(r) //nolint:bodyclose // closed below
	if err != nil {
		return err
	}
	_ = a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return errors.New(a.Status)
	}
	return nil
}
