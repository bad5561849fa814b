package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/study"
)

// ingressPods are a server, HAProxy before it as a controller, and the objects whose names HAProxy serves. The first three %s are images.
const ingressPods = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: node1
  securityContext: {runAsUser: 65532}
  initContainers:
  - {name: copy, image: "%[1]s", imagePullPolicy: Never, command: [/tare, internal, copy, /copy/tare], volumeMounts: [{name: p, mountPath: /copy}]}
  - {name: file, image: "%[1]s", imagePullPolicy: Never, command: [/tare, internal, http, file, --path, /tmp/html/file.txt, --size, "128"], volumeMounts: [{name: tmp, mountPath: /tmp}]}
  containers:
  - {name: c, image: "%[2]s", command: [/copy/tare, internal, ingress, nginx], volumeMounts: [{name: p, mountPath: /copy}, {name: tmp, mountPath: /tmp}]}
  volumes: [{name: p, emptyDir: {}}, {name: tmp, emptyDir: {}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: again, annotations: {haproxy-ingress.github.io/backend-protocol: h1-ssl}}
spec:
  tls: [{hosts: [r0.tare.test, r1.tare.test]}]
  rules:
  - {host: r0.tare.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 8443}}}}]}}
  - {host: r1.tare.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 8443}}}}]}}
`

const ingressProxy = `apiVersion: v1
kind: Pod
metadata: {name: proxy}
spec:
  nodeName: node1
  securityContext: {runAsUser: 65532}
  initContainers:
  - {name: copy, image: "%[1]s", imagePullPolicy: Never, command: [/tare, internal, copy, /copy/tare], volumeMounts: [{name: p, mountPath: /copy}]}
  containers:
  - {name: c, image: "%[2]s", command: [/copy/tare, internal, ingress, haproxy, --backend, "%[3]s", --termination, reencrypt, --routes, "2"], volumeMounts: [{name: p, mountPath: /copy}, {name: tmp, mountPath: /tmp}]}
  volumes: [{name: p, emptyDir: {}}, {name: tmp, emptyDir: {}}]
`

// TestIngressOnCluster: HAProxy, nginx and wrk run in pods, with HAProxy in each class. Then the load generator alone takes the routes of
// Ingress objects that the API server has, and loads a proxy that exists.
func TestIngressOnCluster(t *testing.T) {
	l := theLab(t)
	root := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(l.kubeconfig))))
	name, err := os.ReadFile(filepath.Join(root, ".cache/lab/run/registry-name"))
	kubectl, _ := filepath.Glob(filepath.Join(root, ".cache/lab/*/kubectl"))
	if err != nil || len(kubectl) == 0 {
		t.Skipf("the lab has no registry or no kubectl: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	output := func(in, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	refs, apps := map[string]string{}, []string{}
	for _, app := range []string{"nginx", "haproxy", "wrk"} {
		lines := strings.Split(output("", bin, "image", "push", app, strings.TrimSpace(string(name))+"/test/"+app+":1", "--insecure"), "\n")
		refs[app] = lines[len(lines)-1]
		apps = append(apps, "--app", app+"="+refs[app])
	}
	const space = "tare-test-ingress"
	kube := func(in string, args ...string) string {
		t.Helper()
		return output(in, kubectl[0], append([]string{"--kubeconfig", l.kubeconfig, "-n", space}, args...)...)
	}
	kube("", "create", "namespace", space)
	t.Cleanup(func() {
		_ = exec.Command(kubectl[0], "--kubeconfig", l.kubeconfig, "delete", "namespace", space, "--wait=false").Run()
	})
	start := func(manifest, pod string) string {
		t.Helper()
		kube(manifest, "apply", "-f", "-")
		kube("", "wait", "--for=condition=Ready", "--timeout=90s", "pod/"+pod)
		return kube("", "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
	}
	web := start(fmt.Sprintf(ingressPods, l.image, refs["nginx"]), "web")
	proxy := start(fmt.Sprintf(ingressProxy, l.image, refs["haproxy"], web), "proxy")
	dir := t.TempDir()
	text := fmt.Sprintf(`study: ingress
seed: 1
baseline: process
factors: {sandbox: [process, gvisor]}
workloads:
  own: {kind: ingress, termination: edge, connections: 4, duration: 400ms, warmup: 200ms}
  wrk: {kind: ingress, objects: objects.yaml, address: %[1]s, https-port: 8443, url-path: /file.txt, connections: 4, duration: 400ms, warmup: 200ms}
  open: {kind: ingress, objects: objects.yaml, address: %[1]s, https-port: 8443, url-path: /file.txt, load: open, rate: 100, targets: ^r1, duration: 400ms, warmup: 200ms}
stop: {fixed: 1}
sentinel: off
`, proxy)
	for file, text := range map[string]string{"objects.yaml": kube("", "get", "ingress", "-o", "yaml"), "study.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	results := filepath.Join(dir, "r")
	args := append([]string{"run", filepath.Join(dir, "study.yaml"), "-o", results, "--insecure-registry"}, apps...)
	if out, err := l.tare(ctx, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trials := load(t, results)
	for i := range trials {
		tr := &trials[i]
		w, _ := tr.Cell.Get(study.FactorWorkload)
		if v, ok := tr.Sample("rate"); tr.Status != record.OK || !ok || v < 20 {
			t.Errorf("trial %d, %s: %v answers a second, %+v", tr.Seq, w, v, tr.Failure)
		}
	}
	if len(trials) != 6 {
		t.Errorf("%d trials, want 6", len(trials))
	}
	l.cleaned(ctx, t)
}
