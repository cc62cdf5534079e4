# Two commands do everything on a fresh machine: `make run` and `make test`.

CARGO ?= cargo
SOAK_SECONDS ?= 300

.PHONY: build install run test test-as-user check bench agents clients diagrams projects forks schemathesis fuzz soak docs help

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Without a dynamic linker the program starts in half the time, and runs on any distribution.
STATIC := -C target-feature=+crt-static -C relocation-model=static

# Functions that came out the same are kept once. The linker that comes with Rust on this kind of machine can do that.
COMMA := ,
SMALL := $(if $(filter x86_64,$(shell uname -m)),-C link-arg=-Wl$(COMMA)--icf=all)

# The frame of a function whose base has a register of its own is described to the unwinder in a few bytes. Without
# that the tables are a megabyte larger. Nothing unwinds through C, which keeps its registers and has no tables.
build bench: export RUSTFLAGS += -C force-frame-pointers=yes
build bench: export CFLAGS += -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer

BINARIES := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)/release

build: ## Build the release binary: target/release/carrel
	$(CARGO) rustc --release -p carrel-cli --bin carrel -- $(STATIC) $(SMALL)

PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share

install: build ## Install the program, its manual pages and completion scripts below DESTDIR and PREFIX
	install -D -m 755 $(BINARIES)/carrel $(DESTDIR)$(PREFIX)/bin/carrel
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
	  $(SHARE)/fish/vendor_completions.d
	$(BINARIES)/carrel man $(SHARE)/man/man1
	$(BINARIES)/carrel completions bash > $(SHARE)/bash-completion/completions/carrel
	$(BINARIES)/carrel completions zsh > $(SHARE)/zsh/site-functions/_carrel
	$(BINARIES)/carrel completions fish > $(SHARE)/fish/vendor_completions.d/carrel.fish

run: build ## Build, and serve workspaces and tasks on 127.0.0.1:8080 from ./data
	@$(BINARIES)/carrel serve --bind 127.0.0.1:8080 --data ./data

# Tests append what they could not run here; where CI is set, only a test that another user runs may.
export CARREL_SKIPS ?= $(abspath $(BINARIES)/..)/skips.txt

test: ## Install what the tests need, then run all of them
	scripts/install-test-tools
	@rm -f "$$CARREL_SKIPS"
	$(CARGO) test --workspace --doc --quiet
	$(CARGO) nextest run --workspace --profile ci
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory test-as-user; fi
	@touch "$$CARREL_SKIPS" && sort "$$CARREL_SKIPS" && echo "$$(wc -l < "$$CARREL_SKIPS") skips"

test-as-user: ## As root: run the tests of files and workspaces as an ordinary user too
	scripts/test-as-user

check: ## Formatting, lints, documentation, supply chain
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
	scripts/check-supply-chain

docs: ## Write the generated parts of docs/
	$(CARGO) run --quiet -p carrel-config --example workflow_reference > docs/workflow.md
	$(CARGO) run --quiet -p carrel-config --example policy_reference > docs/policy.md
	$(CARGO) run --quiet -p carrel-tools --example tool_reference > docs/tools.md
	$(CARGO) run --quiet -p carrel-api --example api_reference > docs/openapi.json
	$(CARGO) run --quiet -p carrel-api --example api_reference -- --markdown > docs/api.md

bench: build ## Measure against plain work and other sandboxes, as ratios in one run
	$(CARGO) run --release -p carrel-bench

agents: build ## Scripted agent tasks against Carrel and other MCP servers (needs npm, pip, cargo and clangd)
	python3 benches/agent/run.py --carrel $(BINARIES)/carrel
	python3 benches/agent/run.py --carrel $(BINARIES)/carrel --code

fuzz: ## Fuzz the readers of paths, workflows, command lines and snapshots, or FUZZ_TARGETS, for SOAK_SECONDS each
	scripts/fuzz $(SOAK_SECONDS) "$(FUZZ_TARGETS)"

diagrams: build ## Diagrams by a real mermaid-cli and Chromium, in the sandbox (needs npm and chromium)
	scripts/draw-diagrams $(BINARIES)/carrel

clients: build ## The public MCP suite, and real clients: SDKs, Inspector, agents (needs npm and pip)
	scripts/mcp-conformance
	scripts/mcp-clients

projects: build ## Tests and linters of real projects, in the sandbox and outside (needs the registries)
	scripts/install-test-tools
	scripts/verify-projects

forks: build ## git, builds, package managers and tests of real projects, in forks and in their base (needs the registries)
	scripts/verify-forks

schemathesis: ## Requests made from /openapi.json, for SOAK_SECONDS (needs pip)
	scripts/schemathesis $(SOAK_SECONDS)

soak: ## The long runs: races, kills, 10 GB of output, 10,000 starts, language servers compared, 20 minutes of code tools, 100,000 histories of the conductor
	CARREL_HISTORIES=100000 $(CARGO) test --release -p carrel-conductor --test suite -- --nocapture simulation::
	CARREL_RACE_SECONDS=60 CARREL_KILL_ROUNDS=20 CARREL_SOAK=1 \
	  $(CARGO) nextest run --workspace --profile soak \
	  -E 'test(race::) | test(kill::) | test(killed::) | test(load::) | test(resources::) | test(exec::) | test(service::) | test(attacks::) | test(conductor::crash::) | test(drive::load::) | test(oracle::) | test(soak::)'
	CARREL_KILL_ROUNDS=100 $(CARGO) nextest run --profile ci -p carrel-snapshot -p carrel-fork -E 'test(killing::)'
	$(CARGO) nextest run --profile ci -p carrel-code --features all-grammars
