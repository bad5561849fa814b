package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// plane is a control plane on the loopback interface, from the programs that `make lab` built: etcd, the API server, and
// the controllers of namespaces and their service accounts. Its pods run only if it has simulated nodes. It keeps nothing
// after its end.
type plane struct {
	dir, bin   string // folders of this plane and of the programs
	server     string // URL
	kubeconfig string
	http       *http.Client
	daemons    []*exec.Cmd
}

// planeToken gives all rights on a plane. A plane lives for minutes, and only this machine can reach it.
const planeToken = "bench"

// planeWithin is how long the API server may take until it is ready, on a busy machine.
const planeWithin = 2 * time.Minute

// newPlane starts a control plane. stop ends it.
func (b *bench) newPlane(ctx context.Context, name string) (*plane, error) {
	built, _ := filepath.Glob(filepath.Join(b.root, ".cache/lab/*/kube-apiserver"))
	if len(built) == 0 {
		return nil, errors.New("there is no kube-apiserver; build it with make lab")
	}
	p := &plane{dir: filepath.Join(b.work, name), bin: filepath.Dir(built[0])}
	if err := p.up(ctx); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *plane) up(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	p.server = "https://127.0.0.1:" + ports[2]
	p.kubeconfig = p.file("kubeconfig")
	p.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // loopback
	if err := p.files(); err != nil {
		return err
	}
	etcd, peers := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	for _, d := range [][]string{
		{
			"etcd", "--data-dir=" + p.file("etcd"), "--name=bench", "--unsafe-no-fsync", "--quota-backend-bytes=8589934592", "--listen-client-urls=" + etcd,
			"--advertise-client-urls=" + etcd, "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=bench=" + peers,
		},
		{
			"kube-apiserver", "--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--secure-port=" + ports[2], "--cert-dir=" + p.file("certificates"),
			"--token-auth-file=" + p.file("tokens"), "--authorization-mode=AlwaysAllow", "--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + p.file("key"), "--service-account-signing-key-file=" + p.file("key"), "--service-cluster-ip-range=10.96.0.0/16",
			"--endpoint-reconciler-type=none", "--profiling=false", "--max-requests-inflight=1000", "--max-mutating-requests-inflight=500",
		},
	} {
		if err := p.start(ctx, d); err != nil {
			return err
		}
	}
	if err := p.ready(ctx); err != nil {
		return err
	}
	return p.start(ctx, []string{
		"kube-controller-manager", "--kubeconfig=" + p.kubeconfig, "--leader-elect=false", "--secure-port=0", "--profiling=false",
		"--controllers=namespace-controller,serviceaccount-controller,node-lifecycle-controller", "--node-monitor-grace-period=10m", "--kube-api-qps=300", "--kube-api-burst=600",
	})
}

// simulate adds a scheduler and simulated nodes like those of the lab.
func (p *plane) simulate(ctx context.Context, root string, nodes int) error {
	node, err := os.ReadFile(filepath.Join(root, "scripts/lab/config/simulated.json")) //nolint:gosec // of the source
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	for _, d := range [][]string{
		{"kube-scheduler", "--kubeconfig=" + p.kubeconfig, "--leader-elect=false", "--secure-port=0", "--profiling=false", "--kube-api-qps=300", "--kube-api-burst=600"},
		{
			"kwok", "--kubeconfig=" + p.kubeconfig, "--config=" + filepath.Join(p.bin, "kwok-stages.yaml"), "--manage-all-nodes=false",
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--cidr=10.78.0.0/16", "--node-ip=127.0.0.1", "--server-address=127.0.0.1:" + ports[0],
		},
	} {
		if err := p.start(ctx, d); err != nil {
			return err
		}
	}
	for i := range nodes {
		text := strings.NewReplacer("NAME", fmt.Sprintf("simulated-%04d", i), "{{.Arch}}", "amd64").Replace(string(node))
		if _, err := p.call(ctx, http.MethodPost, "/api/v1/nodes", []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) file(name string) string { return filepath.Join(p.dir, name) }

// files writes the files that the daemons and clients read.
func (p *plane) files() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	type object = map[string]any
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "bench",
		"clusters": []object{{"name": "bench", "cluster": object{"server": p.server, "insecure-skip-tls-verify": true}}},
		"users":    []object{{"name": "bench", "user": object{"token": planeToken}}},
		"contexts": []object{{"name": "bench", "context": object{"cluster": "bench", "user": "bench"}}},
	})
	if err != nil {
		return err
	}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"key":        pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		"tokens":     []byte(planeToken + `,bench,1,"system:masters"` + "\n"),
		"kubeconfig": config,
	} {
		if err := os.WriteFile(p.file(name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start starts a daemon. It ends with this program.
func (p *plane) start(ctx context.Context, args []string) error {
	log, err := os.Create(p.file(args[0] + ".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, args[0]), args[1:]...) //nolint:gosec // built from pinned modules
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.daemons = append(p.daemons, cmd)
	return nil
}

// ready waits until the API server is ready.
func (p *plane) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, planeWithin)
	defer cancel()
	for {
		_, err := p.call(ctx, http.MethodGet, "/readyz", nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(p.file("kube-apiserver.log"))
			return fmt.Errorf("the API server does not answer: %w: %s", err, tail(log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// call sends a request to the API server, and returns the answer.
func (p *plane) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+planeToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, tail(text))
	}
	return text, err
}

// pods returns the number of pods.
func (p *plane) pods(ctx context.Context) (int, error) {
	text, err := p.call(ctx, http.MethodGet, "/api/v1/pods?limit=1", nil)
	var list struct {
		Metadata struct {
			Remaining int `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list.Metadata.Remaining + len(list.Items), err
}

// stop ends the daemons in reverse order.
func (p *plane) stop() {
	for _, d := range slices.Backward(p.daemons) {
		_ = d.Process.Signal(syscall.SIGKILL) // nobody needs its data
		_ = d.Wait()
	}
	_ = os.RemoveAll(p.dir)
}

// freePorts returns ports of the loopback interface on which nobody listens.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports, nil
}
