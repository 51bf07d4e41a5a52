#!/usr/bin/env bash
# Runs each fuzz target of the tree for FUZZTIME (default 5m), one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
for file in $(git grep -l '^func Fuzz' -- '*_test.go'); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "=== $(dirname "$file") $target"
		go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5m}"
	done
done
