"""Jumps on every function of a large program: how long that takes, how long it is stopped for it,
and what they take of its memory. The program sleeps, so a stop is as long as our work in it."""

import os
import subprocess
import time

from .daemon import Daemon
from .programs import read_line

PYTHON = os.path.realpath("/usr/bin/python3.11")
SLEEPER = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
MOST_SECONDS = 100


def function_offsets(path):
    """File offsets of what has a frame description, by readelf, for a file whose text is mapped at
    offset plus a constant; where a function begins with ud2 no probe can stand."""
    frames = subprocess.run(["readelf", "--debug-dump=frames", path], capture_output=True, text=True,
                            check=True).stdout
    starts = sorted({int(line.split("pc=")[1].split("..")[0], 16)
                     for line in frames.splitlines() if " FDE " in line})
    segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                              check=True).stdout
    loads = [[int(word, 16) for word in line.split()[1:5]]
             for line in segments.splitlines() if line.split()[:1] == ["LOAD"] and " E " in line]
    with open(path, "rb") as file:
        content = file.read()
    offsets = [start - address + offset for start in starts for offset, address, _, size in loads
               if address <= start < address + size]
    return [at for at in offsets if content[at:at + 2] != b"\x0f\x0b"]


class Target:
    """What the daemon says about the one process that it has attached to."""

    def __init__(self, daemon, pid):
        self.daemon = daemon
        self.pid = pid

    def call(self, verb, *words, text=None):
        self.daemon.probectl(verb, "--pid", self.pid, *words, text=text)

    def stopped_ms(self):
        return self.daemon.rows("targets")[0]["total_stop_ms"]

    def jumps(self):
        lines = self.daemon.probectl("sites", "--pid", self.pid).stdout.splitlines()
        return sum("[OPTIMIZED]" in line for line in lines), len(lines)

    def wait_for_jumps(self):
        """All that there will be come in one stop."""
        deadline = time.monotonic() + MOST_SECONDS
        while True:
            jumps, sites = self.jumps()
            if jumps > 0.9 * sites:
                return jumps
            if time.monotonic() > deadline:
                raise TimeoutError(f"{jumps} of {sites} sites are jumps")
            time.sleep(0.1)  # the answer keeps the daemon busy as well

    def arena_bytes(self):
        """Pages in use of anonymous executable memory: nobody but us maps any in this program."""
        used, is_ours = 0, False
        with open(f"/proc/{self.pid}/smaps", encoding="utf-8") as maps:
            for line in maps:
                words = line.split()
                if "-" in words[0]:
                    is_ours = words[1] == "r-xp" and len(words) == 5
                elif words[0] == "Rss:" and is_ours:
                    used += int(words[1]) << 10
        return used

    def timed(self, work):
        """(milliseconds of all, milliseconds stopped)"""
        stopped, start = self.stopped_ms(), time.monotonic()
        work()
        return (time.monotonic() - start) * 1e3, self.stopped_ms() - stopped


def row(case, measured, goals, note=""):
    whole, stopped = measured
    return [{"case": f"{case}: whole", "measured": f"{whole:.0f} ms", "goal": goals[0], "note": note},
            {"case": f"{case}: stopped", "measured": f"{stopped:.1f} ms", "goal": goals[1]}]


def memory_row(arguments, target):
    size, (_, sites) = target.arena_bytes(), target.jumps()
    return {"case": f"target memory a probe, {arguments}", "measured": f"{size / sites:.0f} bytes",
            "goal": "<= 512 bytes", "note": f"{size >> 10} KiB of executable memory of ours"}


def definitions(arguments):
    """(names, lines)"""
    offsets = function_offsets(PYTHON)
    lines = "".join(f"p:mass/f{at:x} {PYTHON}:{at:#x} {arguments}\n" for at in offsets)
    return [f"mass/f{at:x}" for at in offsets], lines


def arm(target, lines):
    target.call("define", "--quiet", "-f", "-", text=lines)
    target.wait_for_jumps()


def measure_memory_of_numbers(daemon, pid):
    target = Target(daemon, pid)
    target.call("attach")
    arm(target, definitions("number=%di:u64 other=%si:u64")[1])
    row = memory_row("two numbers", target)
    target.call("detach")
    return [row]


def measure_in(daemon, pid):
    target = Target(daemon, pid)
    names, lines = definitions("number=%di:u64 text=+0(%si):string")
    target.call("attach")
    armed = target.timed(lambda: arm(target, lines))
    jumps, sites = target.jumps()
    memory = memory_row("a number and a string", target)
    switched = target.timed(lambda: daemon.probectl("optimization", "off"))
    daemon.probectl("optimization", "on")
    target.wait_for_jumps()
    deleted = target.timed(lambda: target.call("delete", *names))
    arm(target, lines)
    start = time.monotonic()
    target.call("detach")
    detached = (time.monotonic() - start) * 1e3
    return [
        *row(f"{sites} probes armed, {jumps} as jumps", armed, ("< 2000 ms", "< 50 ms")),
        *row("jumps switched off", switched, ("", "")),
        *row("all deleted", deleted, ("< 1000 ms", "")),
        {"case": "armed again, then detached: whole", "measured": f"{detached:.0f} ms",
         "goal": "< 1000 ms"},
        memory,
    ]


def with_sleeper(measure_it, daemon):
    program = subprocess.Popen([PYTHON, "-c", SLEEPER], stdout=subprocess.PIPE, bufsize=0)
    try:
        if read_line(program) != b"ready":
            raise RuntimeError("the program did not start")
        return measure_it(daemon, program.pid)
    finally:
        program.kill()
        program.wait()


def measure(build):
    with Daemon(build) as daemon:
        daemon.probectl("optimization", "on")
        rows = with_sleeper(measure_in, daemon)
        return rows + with_sleeper(measure_memory_of_numbers, daemon)
