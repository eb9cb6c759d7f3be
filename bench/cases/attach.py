"""How long a target is stopped: attaching to 1,000 threads, arming 1,000 probes in one request."""

import time

from .daemon import Daemon, function_offsets
from .programs import Program

THREADS = 1000
PROBES = 1000
LIBRARY = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def measure(build):
    with Daemon(build) as daemon, Program(f"{build}/bench/bench_threads", THREADS) as program:
        start = time.monotonic()
        daemon.probectl("attach", "--pid", program.pid)
        attach_ms = (time.monotonic() - start) * 1e3
        attached = daemon.rows("targets")[0]
        lines = "".join(f"p:bench/f{number} {LIBRARY}:{offset:#x}\n" for number, offset in
                        enumerate(function_offsets(LIBRARY, PROBES)))
        start = time.monotonic()
        daemon.probectl("define", "--pid", program.pid, "-f", "-", text=lines)
        define_ms = (time.monotonic() - start) * 1e3
        armed = daemon.rows("targets")[0]
        daemon.probectl("detach", "--pid", program.pid)
    return [
        {"case": f"attach to {THREADS} threads: a thread stopped",
         "measured": f"{attached['total_stop_ms']:.1f} ms", "goal": "< 100 ms",
         "note": f"whole command {attach_ms:.0f} ms"},
        {"case": f"{PROBES} probes in one request: stopped",
         "measured": f"{armed['total_stop_ms'] - attached['total_stop_ms']:.1f} ms",
         "goal": "< 50 ms", "note": f"whole command {define_ms:.0f} ms, {armed['sites']} sites"},
    ]
