"""Memory of the daemon: idle, and what each of many probes adds."""

from .daemon import Daemon, function_offsets
from .programs import Program

PROBES = 10000
LIBRARY = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"


def measure(build):
    with Daemon(build) as daemon, Program(f"{build}/bench/bench_hot", 1) as program:
        daemon.probectl("optimization", "off")  # analyses of files are kept for a while
        idle = daemon.resident_kib()
        daemon.probectl("attach", "--pid", program.pid)
        offsets = function_offsets("/usr/lib/x86_64-linux-gnu/libc.so.6", 2000)

        def define(group):
            lines = "".join(f"p:{group}/f{number} /usr/lib/x86_64-linux-gnu/libc.so.6:{offset:#x} "
                            "a=%di:u64\n" for number, offset in enumerate(offsets))
            daemon.probectl("define", "--pid", program.pid, "-f", "-", text=lines)
            return daemon.resident_kib()

        # The first round pays for the file's symbols; the later ones are probes and nothing else.
        first = define("warm")
        last = first
        rounds = PROBES // len(offsets)
        for number in range(rounds):
            last = define(f"g{number}")
        per_probe = (last - first) * 1024 / (rounds * len(offsets))
    return [
        {"case": "idle daemon, resident", "measured": f"{idle / 1024:.1f} MiB", "goal": "< 40 MiB"},
        {"case": "memory a probe", "measured": f"{per_probe:.0f} bytes", "goal": "< 2048 bytes"},
    ]
