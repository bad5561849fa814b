# make run    install what is missing, build, run the default study
# make test   install what tests need, lint, run every test
# make race   the same under the race detector, where it matters
# make fuzz   let every fuzz target look for new inputs, FUZZ_TIME each
# make kills  kill runs at 1,000 moments on fake and at 50 on real sandboxes
# make truth  simulate studies whose truth is known, and print what is achieved beside what is promised
# make economy  replay stopping rules on exhaustive data, and print what they save and miss (docs/economy.md)
# make lab-vm test it all in a virtual machine with systemd and only cgroup v2
# make lab    start a real Kubernetes cluster on this machine, for tests; make lab-down removes it
# make bench  print the figures of docs/performance.md
#
# Both install into the system with apt-get (as root) and into .cache/.

GO        ?= go
STUDY     ?= studies/first.yaml
RESULTS   ?= results/$(basename $(notdir $(STUDY)))
VERSION   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
FUZZ_TIME ?= 5s
LINT_VER  := v2.15.0
LINT      := .cache/tools/golangci-lint-$(LINT_VER)/golangci-lint
SUM_VER   := v1.13.0
SUM       := .cache/tools/gotestsum-$(SUM_VER)/gotestsum

export CGO_ENABLED = 0
# A Go of the distribution may be too old: scripts/setup.sh then puts one there.
export PATH := /usr/local/lib/tare/go/bin:/usr/local/go/bin:$(PATH)
# One set of flags for build, lint, tests and fuzz. The go command compiles a dependency again for
# each set, and Kubernetes's libraries alone take minutes.
export GOFLAGS := $(strip $(shell PATH='$(PATH)' $(GO) env GOFLAGS 2>/dev/null) -trimpath)

.PHONY: all run build test prepare lint unit unit-host unit-rest unit-alone fuzz race truth economy lab-vm lab lab-down bench kills setup setup-test clean

all: build

# What a virtual machine starts with is a small program of its own, which tare carries.
build: setup-go
	$(GO) build -ldflags '-s -w' -o sandbox/vm/boot/guest-init ./agent/guest/init
	$(GO) build -tags guestinit -ldflags '-s -w -X main.version=$(VERSION)' -o bin/tare ./cmd/tare

run: setup build
	bin/tare run $(STUDY) --results $(RESULTS) --wait

test: prepare lint unit

# Downloads and packages are waited for while the processors compile.
prepare:
	@$(MAKE) --no-print-directory -j2 setup-test build $(LINT) $(SUM)

lint: $(LINT)
	$(LINT) run ./...

# What fails in one part does not stop the others. scripts/test.sh says why these parts.
unit: $(SUM)
	@status=0; $(MAKE) --no-print-directory -k -j2 unit-host unit-rest || status=1; \
	$(MAKE) --no-print-directory -j1 unit-alone || status=1; exit $$status

unit-host unit-rest unit-alone: | $(SUM)
	scripts/test.sh $(SUM) $(@:unit-%=%)

# The race detector needs a C compiler, so it is not part of `make test`.
race: setup-go
	CGO_ENABLED=1 $(GO) test -race ./agent ./run ./plan ./study ./store ./collect/... ./workload/... ./report/document ./report/plot ./report/serve

# TRUTH="-long" simulates every case, for hours; TRUTH="-only 'rows 16 x 1'" picks some; docs/method/simulated.md.
truth: setup-go
	$(GO) run ./scripts/truth $(TRUTH)

# ECONOMY="-data results/economy" replays readings of your own.
economy: setup-go
	$(GO) run ./scripts/truth -economy $(ECONOMY)

# LABVM="-steps doctor,study -v" runs some steps and shows them; -list prints their names.
lab-vm: setup build
	$(GO) run ./scripts/labvm $(LABVM)

# NODES=100 adds simulated nodes, LAB="-check" checks it with pods, LAB="-ingress" adds an ingress controller, LAB="-kubevirt" adds KubeVirt; docs/lab.md.
lab: setup
	$(GO) run ./scripts/lab up $(if $(NODES),-simulated $(NODES)) $(LAB)

lab-down: setup-go
	$(GO) run ./scripts/lab down

bench: setup setup-test build
	scripts/bench.sh

# Checks that killed runs lose no announced trial and leave nothing on the host. Each test
# run does the same with fewer kills. Needs root; takes about 35 minutes.
KILLS_FAKE ?= 1000
KILLS_REAL ?= 50
KILLS_MACHINES ?= 10
kills: setup setup-test build
	TARE_KILLS_FAKE=$(KILLS_FAKE) TARE_KILLS_REAL=$(KILLS_REAL) TARE_KILLS_MACHINES=$(KILLS_MACHINES) \
		$(GO) test ./cmd/tare -count=1 -timeout 2h -v -run 'TestKillAtAnyMoment|TestInterruptLeavesNothing'

# Lets each fuzz target look for new inputs; the seeds run in every test.
fuzz: setup-go
	$(GO) run ./scripts/fuzz -time $(FUZZ_TIME)

.PHONY: setup-go
setup-go:
	scripts/setup.sh go

setup: | setup-go
	scripts/setup.sh run

# Both use apt, which one at a time can.
setup-test: | setup
	scripts/setup.sh test

$(LINT): | setup-go
	GOBIN=$(abspath $(dir $(LINT))) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VER)

$(SUM): | setup-go
	GOBIN=$(abspath $(dir $(SUM))) $(GO) install gotest.tools/gotestsum@$(SUM_VER)

clean:
	rm -rf bin .cache sandbox/vm/boot/guest-init
