"""One definition on one function of one program, in every way that it can be probed: what a hit adds
to a call, from the call to the tracer's buffer. What jumps record is read and counted as well.

The ways are measured in turn in short rounds, of about a millisecond each, so that the machine's
other work meets all alike. A kernel uprobe belongs to a file, so each way has a copy of the program
for itself.
"""

import contextlib
import shutil
import subprocess
import tempfile
import time

from . import others
from .daemon import Attached, Daemon
from .programs import Program, symbol

ARGUMENTS = "number=%di:u64 text=+0(%si):string"
RETURNED = "value=$retval:u64"
NOP = 4  # the function begins with endbr64, which is 4 bytes, and a 5-byte nop
ROUNDS, SETTLING = 101, 10


class Way:
    """A program with a probe on its function, or with none."""

    def __init__(self, name, program, goal=None, after_round=lambda: None):
        self.name = name
        self.program = program
        self.goal = goal  # so many times what a jump adds
        self.after_round = after_round
        self.rounds = []
        self.calls = 0
        self.note = ""

    def run_round(self):
        calls, cost = self.program.run_once()
        self.calls += calls
        self.rounds.append(cost)
        self.after_round()

    def cost(self, share=0.5):
        """Nanoseconds a call, of the round that this share of all do not beat."""
        rounds = sorted(self.rounds[SETTLING:])
        return rounds[int(len(rounds) * share)]


@contextlib.contextmanager
def plain(hot):
    with Program(hot, 400_000) as program:
        yield Way("call without a probe", program)


@contextlib.contextmanager
def boosted(build, hot):
    with Daemon(build) as daemon, Program(hot, 100) as program:
        daemon.probectl("optimization", "off")
        with Attached(daemon, program, f"p:bench/hit {hot}:{symbol(hot, 'hot'):#x} {ARGUMENTS}"):
            way = Way("boosted probe", program)
            yield way
            way.note = conclusion(daemon, way)


@contextlib.contextmanager
def optimized(build, hot, name, kind, arguments):
    """After each round waits until all is read, so that a full ring loses nothing."""
    definition = f"{kind}:bench/hit {hot}:{symbol(hot, 'hot'):#x} {arguments}"
    with Daemon(build) as daemon, Program(hot, 40_000) as program:
        daemon.probectl("optimization", "on")
        with Attached(daemon, program, definition, Attached.JUMP):
            way = Way(name, program, after_round=lambda: drain(daemon, way))
            yield way
            way.note = conclusion(daemon, way)


def drain(daemon, way, seconds=30):
    deadline = time.monotonic() + seconds
    while daemon.rows("status")[0]["events_published"] < way.calls:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{way.name}: {daemon.rows('list')[0]} of {way.calls} calls")
        time.sleep(0.01)


def conclusion(daemon, way):
    probe, site = daemon.rows("list")[0], daemon.rows("sites")[0]
    if (probe["recorded"], probe["missed"]) != (way.calls, 0):
        raise RuntimeError(f"{way.name}: {probe} of {way.calls} calls")
    return f"{site['mechanism']}; all of {way.calls} recorded, {probe['lost']} lost"


@contextlib.contextmanager
def kernel(hot, name, kind, arguments, goal=None, at=0, calls=40):
    offset = symbol(hot, "hot") + at
    with others.kernel_probe(kind, f"{hot}:{offset:#x}", arguments) as event, \
            Program(hot, calls) as program:
        way = Way(name, program, goal)
        yield way
        is_trap = program.byte_at(offset) == b"\xcc"
        way.note = f"the kernel has {'a breakpoint' if is_trap else 'a call'} there; " \
                   f"{others.kernel_hits(event)} of {way.calls} recorded"


@contextlib.contextmanager
def uftrace(hot, goal):
    with tempfile.TemporaryDirectory(prefix="probed-bench-") as folder:
        record = ("record", "-d", folder, "-P", "hot", "-F", "hot", "-A", "hot@arg1/u64,arg2/s")
        with Program(shutil.which("uftrace"), *record, hot, 5000) as program:
            way = Way("uftrace, two arguments (entry and return)", program, goal)
            yield way
        report = subprocess.run(["uftrace", "report", "-d", folder, "-f", "call", "--no-pager"],
                                capture_output=True, text=True, check=True, timeout=120).stdout
        recorded = sum(int(line.split()[0]) for line in report.splitlines()
                       if line.split()[1:] == ["hot"])
        way.note = f"{recorded} of {way.calls} recorded"


def ways(build, copy):
    """Scopes, each with a copy of the program; the two that others are compared with come first."""
    yield plain(copy())
    yield optimized(build, copy(), "optimized probe", "p", ARGUMENTS)
    yield optimized(build, copy(), "optimized return probe, $retval", "r", RETURNED)
    yield boosted(build, copy())
    if others.has_uprobes():
        yield kernel(copy(), "kernel uprobe", "p", ARGUMENTS, goal=300)
        yield kernel(copy(), "kernel uprobe on a 5-byte nop", "p", ARGUMENTS, 25, NOP, 2500)
        yield kernel(copy(), "kernel uretprobe, $retval", "r", RETURNED)
        yield kernel(copy(), "kernel uretprobe on a 5-byte nop", "r", RETURNED, None, NOP, 1600)
    else:
        print("uprobe: no tracefs that knows uprobe_events; the kernel is left out")
    if shutil.which("uftrace"):
        yield uftrace(copy(), goal=8)
    else:
        print("uprobe: no uftrace; it is left out")


def row(way, bare, jump):
    added, unit = way.cost() - bare.cost(), jump.cost() - bare.cost()
    quiet = (way.cost(0.1) - bare.cost(0.1)) / (jump.cost(0.1) - bare.cost(0.1))
    return {"case": way.name, "measured": f"{added:.1f} ns", "ratio": added / unit,
            "goal": f">= {way.goal} x optimized" if way.goal else "",
            "note": f"{way.note}; ratio in the quietest tenth of the rounds: {quiet:.1f}"}


def measure(build):
    with contextlib.ExitStack() as copies, contextlib.ExitStack() as scopes:
        folder = copies.enter_context(tempfile.TemporaryDirectory(prefix="probed-bench-"))
        numbers = iter(range(100))

        def copy():
            return shutil.copy(f"{build}/bench/bench_hot", f"{folder}/hot{next(numbers)}")

        measured = [scopes.enter_context(scope) for scope in ways(build, copy)]
        for _ in range(SETTLING + ROUNDS):
            for way in measured:
                way.run_round()
        scopes.close()
    bare, jump, *_ = measured
    spread = f"in the middle eight tenths of the rounds: {bare.cost(0.1):.1f} to {bare.cost(0.9):.1f}"
    return [{"case": bare.name, "measured": f"{bare.cost():.1f} ns", "note": f"{spread} ns"}] + \
        [row(way, bare, jump) for way in measured[1:]]
