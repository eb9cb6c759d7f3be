#!/usr/bin/env python3
"""How long calls take, as powers of two, from the entries and returns of probectl's JSON:

    probectl attach --pid PID --duration 5 --format json \\
        -e 'p:l/in libc.so.6:malloc' -e 'r:l/out libc.so.6:malloc' | docs/examples/latency.py
"""

import collections
import json
import sys


def durations(lines):
    """Nanoseconds of each call that has an entry and a return; calls nest in their thread."""
    open_calls = collections.defaultdict(list)
    for line in lines:
        event = json.loads(line)
        if event["type"] in ("loss", "unwound"):
            open_calls.clear()  # nobody knows any more which return belongs to which entry
        if event["type"] != "hit":
            continue
        calls = open_calls[event["tid"]]
        if event["kind"] == "entry":
            calls.append(event["monotonic_ns"])
        elif calls:
            yield event["monotonic_ns"] - calls.pop()


def main():
    counts = collections.Counter(duration.bit_length() for duration in durations(sys.stdin))
    most = max(counts.values(), default=0)
    for bits in range(min(counts, default=0), max(counts, default=-1) + 1):
        bar = "@" * (counts[bits] * 50 // most)
        print(f"{1 << bits >> 1:>12} - {(1 << bits) - 1:<12} ns {counts[bits]:>9} |{bar:<50}|")
    print(f"{sum(counts.values())} calls")


if __name__ == "__main__":
    main()
