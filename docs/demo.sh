#!/usr/bin/env bash
# The main job, live: a bash that is already running gets probed, watched, and let go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${PROBED_BUILD_DIR:-build}
output=$(mktemp)

# A program that knows nothing of us: it counts, once every 0.1 s.
bash -c 'n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); echo "count $n"; sleep 0.1; done' >"$output" &
victim=$!
trap 'kill "$victim" 2>/dev/null || true; rm -f "$output"' EXIT
until grep -q 'count 3' "$output"; do sleep 0.05; done

echo "bash $victim is running; its last line: $(tail -n 1 "$output")"
echo "\$ probectl attach --pid $victim -e 'p:demo/assign /usr/bin/bash:bind_variable ...' -e 'r:demo/arith /usr/bin/bash:evalexp ...'"
# shellcheck disable=SC2016  # $retval is ours, not the shell's
"$build/probectl" attach --pid "$victim" --count 10 \
  -e 'p:demo/assign /usr/bin/bash:bind_variable name=+0(%di):string value=+0(%si):string' \
  -e 'r:demo/arith /usr/bin/bash:evalexp expression=+0($arg1):string result=$retval:s64'

before=$(tail -n 1 "$output")
until [ "$(tail -n 1 "$output")" != "$before" ]; do sleep 0.05; done
echo "detached; bash $victim goes on: $before, then $(tail -n 1 "$output");" \
  "TracerPid $(awk '/TracerPid/ {print $2}' "/proc/$victim/status")"
