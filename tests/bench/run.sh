#!/usr/bin/env bash
# Speed against llama.cpp on the same file, start-up times and memory: see docs/bench.md. Arguments go to the bench command, for example
#   tests/bench/run.sh -rounds 1 -starts 2
# BENCH_CLONE=0 leaves out the fresh clone; BENCH_COLD=1 adds one with an empty Go build cache (minutes).
set -euo pipefail
cd "$(dirname "$0")/../.."
export GOTOOLCHAIN=auto CGO_ENABLED=0
CACHE=${DYNAMO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dynamo-test}
mkdir -p "$CACHE" bin
make -s build
cp bin/dynamo bin/bench-dynamo # a build meanwhile is not measured
model=$(bin/dynamo graph pull specs/llama-agg.cue)
args=()

# llama.cpp comes from npm: a prebuilt addon, no install script is run.
need_node() {
	command -v node >/dev/null && command -v npm >/dev/null && return 0
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq nodejs npm >/dev/null
}
if need_node; then
	peer=$CACHE/llamacpp-$(sha256sum tests/bench/package.json | cut -c1-12)
	if [ ! -e "$peer/ok" ]; then
		rm -rf "$peer" && mkdir -p "$peer" && cp tests/bench/package.json "$peer"
		(cd "$peer" && npm install --ignore-scripts --omit=optional --no-package-lock --no-audit --no-fund --loglevel=error)
		touch "$peer/ok"
	fi
	args+=(-node-modules "$peer/node_modules")
else
	echo "NOT RUN: llama.cpp: install Node.js and npm" >&2
fi
[ "${BENCH_CLONE:-1}" = 0 ] || args+=(-clone "$PWD")
[ "${BENCH_COLD:-0}" = 0 ] || args+=(-cold)
go build -trimpath -o bin/bench ./tests/bench
bin/bench -dynamo bin/bench-dynamo -model "$model" -json bin/bench.json "${args[@]}" "$@"
