#!/usr/bin/env bash
# Regenerates what is generated: protobuf, assembly, the published schema and its page, the page of model families. With --check it writes nothing and fails where the tree differs.
set -euo pipefail
cd "$(dirname "$0")/.."
sh runtime/api/generate.sh "${1:-}"
if [ "${1:-}" = --check ]; then
	go test ./tests/schema -run TestPublished
	go test ./nodes/text/family -run TestPage
else
	go test ./tests/schema -run TestPublished -update
	go test ./nodes/text/family -run TestPage -update
fi
kernel=nodes/engine/native/kernel
out=$kernel
if [ "${1:-}" = --check ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
fi
gen=$(mktemp)
go build -o "$gen" ./$kernel/gen
for isa in avx512 avx2; do
	(cd "$kernel" && "$gen" -isa $isa -out "${out/#$kernel/.}/kernel_${isa}_amd64.s" -stubs "${out/#$kernel/.}/stub_${isa}_amd64.go" -pkg kernel)
done
rm -f "$gen"
if [ "$out" != "$kernel" ]; then
	for f in "$out"/*; do
		# The first line names the command that wrote the file, and so its output folder.
		diff -u <(sed 1d "$kernel/$(basename "$f")") <(sed 1d "$f") >&2 || { echo "$(basename "$f"): not what its generator writes; run make generate" >&2; exit 1; }
	done
fi
