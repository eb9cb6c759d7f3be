#!/usr/bin/env python3
"""./dev bench: every number as a ratio of things measured side by side in one run.

Prints a table and writes BUILD/bench.json. Absolute times depend on the machine; ratios are the claim.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cases import (attach, detour, footprint, hit_cost, kernel, kernel_definitions, mass,  # noqa: E402
                   stops, stream, uprobe)

CASES = {
    "hit": hit_cost.measure,
    "uprobe": uprobe.measure,
    "detour": detour.measure,
    "attach": attach.measure,
    "stops": stops.measure,
    "mass": mass.measure,
    "stream": stream.measure,
    "kernel": kernel.measure,
    "kernel-definitions": kernel_definitions.measure,
    "footprint": footprint.measure,
}


def print_table(rows):
    print(f"{'case':<46} {'measured':>16} {'ratio':>9} {'goal':>22}")
    for row in rows:
        ratio = f"{row['ratio']:.2f}" if row.get("ratio") is not None else ""
        print(f"{row['case']:<46} {row['measured']:>16} {ratio:>9} {row.get('goal', ''):>22}")
        if row.get("note"):
            print(f"    {row['note']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", choices=sorted(CASES), action="append")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    rows = []
    for name in options.only or CASES:
        rows += CASES[name](build)
    print_table(rows)
    with open(os.path.join(build, "bench.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=2)
    print(f"wrote {os.path.join(build, 'bench.json')}")


if __name__ == "__main__":
    main()
