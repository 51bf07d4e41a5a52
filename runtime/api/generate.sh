#!/bin/sh
# Generates the Go code of the .proto files beside them, with pinned tools that are fetched when first needed: protoc from PyPI
# (grpcio-tools carries it), the Go plugins from the module proxy.
#   runtime/api/generate.sh          writes
#   runtime/api/generate.sh --check  fails where what is committed differs
set -eu
cd "$(dirname "$0")"
protoc_version=1.85.1 # of grpcio-tools
grpc_plugin=v1.6.2    # protoc-gen-go is of the protobuf version in go.mod
tools=${DYNAMO_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/dynamo/tools}/proto-$protoc_version-$grpc_plugin
if [ ! -x "$tools/venv/bin/python" ] || ! "$tools/venv/bin/python" -c 'import grpc_tools' 2>/dev/null; then
	python3 -m venv "$tools/venv"
	"$tools/venv/bin/pip" install --quiet --disable-pip-version-check "grpcio-tools==$protoc_version"
fi
mkdir -p "$tools/bin"
go build -o "$tools/bin/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
[ -x "$tools/bin/protoc-gen-go-grpc" ] ||
	GOBIN="$tools/bin" go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$grpc_plugin"
out=.
if [ "${1:-}" = --check ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
fi
PATH="$tools/bin:$PATH" "$tools/venv/bin/python" -m grpc_tools.protoc -I. \
	--go_out="$out" --go_opt=paths=source_relative \
	--go-grpc_out="$out" --go-grpc_opt=paths=source_relative dynamo/v1/*.proto
if [ "$out" != . ]; then
	for f in dynamo/v1/*.pb.go; do
		diff -u "$f" "$out/$f" >&2 || { echo "$f: not what the .proto files say; run runtime/api/generate.sh" >&2; exit 1; }
	done
	[ "$(ls dynamo/v1/*.pb.go | wc -l)" = "$(ls "$out"/dynamo/v1/*.pb.go | wc -l)" ] || { echo "runtime/api: a generated file is missing" >&2; exit 1; }
fi
