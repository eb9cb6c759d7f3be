"""What an optimized hit adds to a call, in one process without a daemon: the generated code alone."""

import subprocess

GOALS = {
    "number_and_string": ("optimized hit, u64 and an 11-character string", 30),
    "number": ("optimized hit, u64", None),
    "return": ("optimized return, $retval", 60),
    "entry_and_return": ("optimized entry and return", 80),
    "filtered": ("optimized hit, filtered out by a number", 12),
    "filtered_text": ("optimized hit, filtered out by a text", 12),
    "count": ("optimized hit, count only", 8),
    "off": ("optimized hit, probe off", None),
}


def measure(build):
    output = subprocess.run([f"{build}/bench/bench_detour"], stdout=subprocess.PIPE, check=True,
                            text=True, timeout=120).stdout
    values = {name: float(value) for name, value in map(str.split, output.splitlines())}
    floor = values["floor"]
    rows = [{"case": "clock and one atomic operation", "measured": f"{floor:.1f} ns"}]
    for name, (case, goal) in GOALS.items():
        rows.append({"case": case, "measured": f"{values[name]:.1f} ns",
                     "ratio": values[name] / floor, "goal": f"<= {goal} ns" if goal else ""})
    rows.append({"case": "its code, u64 and a string", "measured": f"{values['bytes']:.0f} bytes",
                 "goal": "<= 512 bytes"})
    return rows
