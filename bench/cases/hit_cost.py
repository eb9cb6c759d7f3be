"""What one hit costs: ours against a bare ptrace loop, the kernel, gdb and ltrace, one program."""

import math
import os
import subprocess

from . import others
from .daemon import Attached, Daemon
from .programs import ROUNDS, Program, per_call, read_line, symbol

CALLS = 400  # a round
ARGUMENTS = "number=%di:u64 text=+0(%si):string"
WAYS = ("sleep", "spin", "follow")


def bare(build, hot, way):
    with Program(hot, CALLS) as program:
        runtime = program.address_of(symbol(hot, "hot"))
        loop = subprocess.Popen(
            [f"{build}/bench/bench_bare_int3", str(program.pid), hex(runtime),
             str((ROUNDS + ROUNDS // 4) * CALLS), way], stdout=subprocess.PIPE, bufsize=0)
        read_line(loop)
        cost = per_call(program)
        loop.wait(30)
        return cost


def ours(build, hot, name, label, arguments=ARGUMENTS, threads=1, core=None):
    """(nanoseconds a hit, mechanism, placement)"""
    offset = symbol(hot, label)
    with Daemon(build) as daemon, Program(hot, CALLS * threads, name, threads) as program:
        daemon.probectl("optimization", "off")  # what is measured is a trap
        if core is not None:
            os.sched_setaffinity(program.pid, {core})
        with Attached(daemon, program, f"p:bench/hit {hot}:{hex(offset)} {arguments}") as attached:
            mechanism = attached.mechanism()
            cost = per_call(program)
            return cost, mechanism, daemon.rows("status")[0]["placement"]


def in_turn(*measurements, turns=3):
    """Medians of things measured in turn, so that a load from outside meets all of them alike."""
    results = [[measure() for measure in measurements] for _ in range(turns)]
    return [sorted(column)[turns // 2] for column in zip(*results)]


def microseconds(cost):
    return f"{cost / 1000:.2f} us"


def row(case, result, floor, goal):
    cost, mechanism, placement = result
    return {"case": case, "measured": microseconds(cost), "ratio": cost / floor, "goal": goal,
            "note": f"{mechanism}; placement: {placement}"}


def one_core(build, hot):
    """The same placement on both sides: the program is held on one core, which the tracer shares."""
    floor, ip, step, boosted, stepped = in_turn(
        lambda: bare(build, hot, "same"),
        lambda: bare(build, hot, "ip"),
        lambda: bare(build, hot, "step"),
        lambda: ours(build, hot, "hot", "hot", core=0),
        lambda: ours(build, hot, "stepped", "stepped_popf", core=0))
    return [
        {"case": "bare int3 round trip, one core", "measured": microseconds(floor)},
        {"case": "the same, only the ip written, one core", "measured": microseconds(ip),
         "ratio": ip / floor},
        row("hit, two fetchargs, one core", boosted, floor, "<= 1.3 x bare"),
        {"case": "bare int3 and a bare single step, one core", "measured": microseconds(step),
         "ratio": step / floor, "note": "a trap flag costs a virtual machine an exit"},
        row("unoptimized hit, two fetchargs, one core", stepped, floor, "<= 2.5 x bare"),
    ], boosted[0]


def busy_machine(build, hot):
    """As many busy processes as CPUs: a tracer that had to wait for its turn would show here."""
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        *bares, boosted = in_turn(*(lambda way=way: bare(build, hot, way) for way in WAYS),
                                  lambda: ours(build, hot, "hot", "hot"))
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    return [{"case": "bare, all CPUs busy, best way", "measured": microseconds(min(bares))},
            row("hit, all CPUs busy", boosted, min(bares), "<= 1.3 x best bare")]


def free(build, hot):
    """Nobody is held anywhere: what placement makes of it."""
    *bares, boosted, stepped = in_turn(
        *(lambda way=way: bare(build, hot, way) for way in WAYS),
        lambda: ours(build, hot, "hot", "hot"),
        lambda: ours(build, hot, "stepped", "stepped_popf"))
    rows = [{"case": f"bare int3 round trip, tracer would {way}", "measured": microseconds(cost)}
            for way, cost in zip(WAYS, bares)]
    return rows + [row("hit, two fetchargs", boosted, min(bares), "<= 1.3 x best bare"),
                   row("unoptimized hit, two fetchargs", stepped, min(bares), "<= 2.5 x best bare")]


def many_threads(build, hot, one):
    return [row(f"hit, {threads} threads on one site", ours(build, hot, "hot", "hot", threads=threads), one, "")
            for threads in (2, 32)]


def by_jump(build, hot):
    """Nanoseconds a call, of a probe as it is by default."""
    with Daemon(build) as daemon, Program(hot, 100 * CALLS) as program:
        definition = f"p:bench/hit {hot}:{symbol(hot, 'hot'):#x} {ARGUMENTS}"
        with Attached(daemon, program, definition, Attached.JUMP):
            return per_call(program)


def against_others(build, hot):
    """Ours again in turn with theirs, so that both meet the same machine."""
    tracers = [("kernel uprobe, two fetchargs", lambda: others.kernel(hot, ARGUMENTS), ""),
               ("gdb dprintf", lambda: others.gdb(hot), ">= 20 x ours"),
               ("ltrace", lambda: others.ltrace(hot), ">= 5 x ours")]
    boosted, jump, *costs = in_turn(lambda: ours(build, hot, "hot", "hot")[0],
                                    lambda: by_jump(build, hot),
                                    *(tracer for _, tracer, _ in tracers))
    rows = [{"case": "boosted hit, in turn with the next", "measured": microseconds(boosted)},
            {"case": "hit as by default (a jump), the call included", "measured": f"{jump:.1f} ns"}]
    for (name, _, goal), cost in zip(tracers, costs):
        known = {"measured": microseconds(cost), "ratio": cost / jump, "goal": goal,
                 "note": f"{cost / boosted:.1f} x a boosted hit"}
        rows.append({"case": name} | (known if cost != math.inf else {"measured": "not available"}))
    return rows


def measure(build):
    hot = f"{build}/bench/bench_hot"
    with Program(hot, 2_000_000) as program:
        plain = per_call(program)
    rows = [{"case": "call without a probe", "measured": f"{plain:.1f} ns"}]
    held, boosted = one_core(build, hot)
    rows += held + free(build, hot) + many_threads(build, hot, boosted)
    return rows + busy_machine(build, hot) + against_others(build, hot)
