#!/usr/bin/env bash
# Load and random faults for SOAK (default 1h), all graphs together; arguments go to the soak command, for example
#   SOAK=3m tests/soak.sh -only mock -seed 7 -v
set -euo pipefail
cd "$(dirname "$0")/.."
export GOTOOLCHAIN=auto CGO_ENABLED=0
make -s build
model=$(bin/dynamo graph pull specs/llama-disagg.cue)
go build -trimpath -o bin/soak ./tests/soak
exec bin/soak -dynamo bin/dynamo -model "$model" -for "${SOAK:-1h}" "$@"
