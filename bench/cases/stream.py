"""The event stream: a steady rate to one client without loss, and a client that cannot keep up."""

import json
import subprocess

RATE = 200_000
SECONDS = 5
SLOW_SECONDS = 2
SLOW_PAUSE_US = 50_000  # after every message


def run(build, seconds, pause_us):
    output = subprocess.run([f"{build}/bench/bench_stream", str(RATE), str(seconds), str(pause_us)],
                            capture_output=True, text=True, check=True, timeout=120).stdout
    return json.loads(output)


def measure(build):
    steady = run(build, SECONDS, 0)
    slow = run(build, SLOW_SECONDS, SLOW_PAUSE_US)
    balanced = slow["received"] + slow["lost"] == slow["published"]
    return [
        {"case": f"stream {RATE} events/s for {SECONDS} s",
         "measured": f"{steady['received'] / steady['seconds']:.0f}/s",
         "ratio": steady["received"] / steady["published"], "goal": "nothing lost",
         "note": f"{steady['lost']} lost, {steady['out_of_order']} out of order"},
        {"case": "slow client: the daemon grows by",
         "measured": f"{slow['grown_kib'] / 1024:.0f} MiB", "goal": "32 MiB queue + little",
         "note": f"{slow['published']} published = {slow['received']} received + {slow['lost']} "
                 f"lost: {'balanced' if balanced else 'NOT BALANCED'}"},
    ]
