# fogplr: make build, make demo, make test. `make help` lists all.
#
# demo, test and the benches make network namespaces, so they need root; they
# install the Debian packages that they need (test/apt-packages.txt).

export GOFLAGS ?= -buildvcs=false
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help build apps needs demo check test test-long bench bench-speed peers install uninstall clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST)

build: ## build bin/fogplr, one static binary, and the laboratory bin/fogplr-lab
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/fogplr ./cmd/fogplr
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/fogplr-lab ./test/fogplr-lab

apps: needs ## build the DDS programs of the tests and the demo
	$(MAKE) -C test/apps

needs: ## install the Debian packages that tests and demo need (root)
	@missing=$$(for p in $$(cat test/apt-packages.txt); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
		echo "Installing what tests and demo need:" $$missing; \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; \
	fi

demo: build apps ## DDS calls survive losing a carrier and a gateway, two minutes (root; JSON=FILE)
	go run ./test/demo $(if $(JSON),--json $(JSON))

check: ## formatting, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet -tags long ./...
	go run $(STATICCHECK) -tags long ./...

test: build apps peers check ## all tests, under 15 minutes (root)
	go test -race -timeout 5m $$(go list ./... | grep -v -e /test/ -e /path$$ -e /replicate$$ -e /arbitrate$$)
	go test ./path ./replicate ./arbitrate # one goroutine each; with -race their simulated worlds take minutes
	go test -timeout 14m -p 1 -parallel 4 ./test/...

test-long: build apps peers ## long campaigns, about an hour (root)
	go test -tags long -timeout 90m -p 2 -parallel 6 -run Long ./...

peers: ## build what fogplr is compared with
	go build -o bin/wireguard-go golang.zx2c4.com/wireguard

bench: build apps peers ## drives, replicas, failures: against the ideal and others, half an hour (root; BENCH=flags)
	bin/fogplr-lab bench $(BENCH)

bench-speed: build peers ## TCP through fogplr and through plain wireguard-go, in turn (root)
	go run ./test/speed --check $(if $(JSON),--json $(JSON))

# It does not build: root's PATH may lack Go, and root should not write here.
install: ## install what build made, and the systemd units (DESTDIR)
	systemd/install.sh "$(DESTDIR)"

uninstall: ## undo install
	systemd/install.sh --uninstall "$(DESTDIR)"

clean: ## remove what was built
	rm -rf bin build
