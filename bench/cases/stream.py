"""From rings to a client: a steady rate without loss, the rate at which loss begins, and a client
that cannot keep up."""

import json
import subprocess

STEADY_RATE = 1_000_000
STEADY_SECONDS = 10
RATES = [1_500_000, 2_000_000, 2_500_000, 3_000_000, 4_000_000]
RATE_SECONDS = 3
MESSAGES_RATE = 200_000
MESSAGES_SECONDS = 5
SLOW_RATE = 200_000
SLOW_SECONDS = 2
SLOW_PAUSE_US = 50_000  # after every message


def run(build, rate, seconds, client="packed", pause_us=0):
    command = [f"{build}/bench/bench_stream", str(rate), str(seconds), client, str(pause_us)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout
    return json.loads(output)


def lost(result):
    return result["ring_lost"] + result["lost"]


def steady(build, rate, seconds, client):
    result = run(build, rate, seconds, client)
    return {"case": f"stream {rate} events/s for {seconds} s, {client}",
            "measured": f"{result['received'] / result['seconds']:.0f}/s",
            "ratio": result["received"] / result["recorded"], "goal": "nothing lost",
            "note": f"{lost(result)} lost, {result['out_of_order']} out of order; CPU ns/event: "
                    f"daemon {result['daemon_ns']:.0f}, client {result['client_ns']:.0f}"}


def where_loss_begins(build):
    kept = STEADY_RATE
    for rate in RATES:
        if lost(run(build, rate, RATE_SECONDS)) > 0:
            return {"case": "stream: loss begins above", "measured": f"{kept}/s",
                    "ratio": kept / STEADY_RATE, "goal": "2000000/s",
                    "note": f"some lost at {rate}/s"}
        kept = rate
    return {"case": "stream: nothing lost up to", "measured": f"{kept}/s",
            "ratio": kept / STEADY_RATE, "goal": "2000000/s"}


def slow(build):
    result = run(build, SLOW_RATE, SLOW_SECONDS, pause_us=SLOW_PAUSE_US)
    balanced = result["received"] + result["lost"] == result["published"]
    return {"case": "slow client: the daemon grows by",
            "measured": f"{result['grown_kib'] / 1024:.0f} MiB", "goal": "32 MiB queue + little",
            "note": f"{result['published']} published = {result['received']} received + "
                    f"{result['lost']} lost: {'balanced' if balanced else 'NOT BALANCED'}"}


def measure(build):
    return [
        steady(build, STEADY_RATE, STEADY_SECONDS, "packed"),
        where_loss_begins(build),
        steady(build, MESSAGES_RATE, MESSAGES_SECONDS, "messages"),
        slow(build),
    ]
