"""Events of the kernel's own ring: a hot loop of system calls with their tracepoint on, decoded,
rendered and streamed; losses against the ring's counters."""

import json
import os
import re
import subprocess

TRACEFS = "/sys/kernel/tracing"
SECONDS = 5
GOAL = 500_000


def overruns(instance):
    total = 0
    for cpu in os.listdir(f"{instance}/per_cpu"):
        with open(f"{instance}/per_cpu/{cpu}/stats", encoding="ascii") as file:
            total += int(re.search(r"^overrun: (\d+)", file.read(), re.M).group(1))
    return total


def measure(build):
    instance = f"{TRACEFS}/instances/probed-bench-{os.getpid()}"
    try:
        os.mkdir(instance)
    except OSError as error:
        return [{"case": "kernel events", "measured": "", "note": f"not measured: {error}"}]
    try:
        output = subprocess.run([f"{build}/bench/bench_kernel_stream", instance, str(SECONDS)],
                                capture_output=True, text=True, check=True, timeout=60).stdout
        result = json.loads(output)
        lost = overruns(instance)
    finally:
        os.rmdir(instance)
    rate = result["received"] / result["seconds"]
    exact = result["lost"] == result["told_lost"] == lost
    return [{"case": "kernel events decoded and streamed", "measured": f"{rate:.0f}/s",
             "ratio": rate / GOAL, "goal": f"{GOAL}/s",
             "note": f"{result['received']} received of {result['recorded']} read; "
                     f"{result['lost']} lost by the ring, {lost} by its own counters: "
                     f"{'exact' if exact else 'NOT EXACT'}"}]
