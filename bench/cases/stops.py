"""How long an attach and the arming of one probe stop a program, as it sees that itself: the longest
time between two looks at the clock of a thread that looks all the time. Of many rounds, the one that
only a tenth of them beat: the machine's other work stops it as well."""

import statistics

from .daemon import Daemon
from .programs import Program, read_line, symbol

ROUNDS = 30


class Spinner(Program):
    def longest_ms(self):
        """Since it was asked last."""
        self.process.stdin.write(b"go\n")
        return int(read_line(self.process).split()[0]) / 1e6


def measure(build):
    rows = []
    for threads, goal in ((1, 2), (100, 10)):
        stopped, free = (sorted(gaps) for gaps in measure_one(build, threads))
        quiet, quiet_free = stopped[ROUNDS // 10], free[ROUNDS // 10]
        rows.append({"case": f"attach and a probe: {threads} thread{'s' * (threads > 1)} stopped",
                     "measured": f"{quiet:.2f} ms", "ratio": quiet / quiet_free,
                     "goal": f"< {goal} ms",
                     "note": f"median {statistics.median(stopped):.2f} ms, longest "
                             f"{stopped[-1]:.2f} ms of {ROUNDS}; without us {quiet_free:.2f} ms "
                             f"(ratio), {statistics.median(free):.2f} ms, {free[-1]:.2f} ms"})
    return rows


def measure_one(build, threads):
    """Longest gaps in milliseconds: with an attach and a definition, and in as much time without."""
    stopped, free = [], []
    path = f"{build}/bench/bench_spin"
    with Daemon(build) as daemon, Spinner(path, threads) as program:
        line = f"p:bench/work {path}:{symbol(path, 'work'):#x}"
        for _ in range(ROUNDS):
            program.longest_ms()
            daemon.probectl("status")
            daemon.probectl("status")
            free.append(program.longest_ms())
            daemon.probectl("attach", "--pid", program.pid)
            daemon.probectl("define", "--pid", program.pid, "-e", line)
            stopped.append(program.longest_ms())
            daemon.probectl("detach", "--pid", program.pid)
    return stopped, free
