#!/bin/sh
# units_test.sh verify|exposure UNITS SCRATCH: the unit files as they would be installed.
set -eu
what=$1 units=$2 scratch=$3

# Out of 10, lower is safer: what the needed capabilities leave.
ceiling=2.5

folder=$(mktemp -d "$scratch/units.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cp "$units"/probed.socket "$folder"
# `verify` wants the program to exist where the unit says, which it does only when installed.
sed 's|^ExecStart=/usr/bin/probed|ExecStart=/bin/true|' "$units"/probed.service > "$folder/probed.service"

case $what in
  verify)
    complaints=$(systemd-analyze verify --man=no "$folder"/probed.service "$folder"/probed.socket 2>&1)
    printf '%s\n' "$complaints"
    test -z "$complaints"
    systemd-sysusers --dry-run "$units"/probed.sysusers
    ;;
  exposure)
    systemd-analyze security --offline=true --no-pager \
      --threshold="$(echo "$ceiling" | tr -d .)" "$folder"/probed.service
    ;;
esac
