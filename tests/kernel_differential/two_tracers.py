"""One program, one set of definitions, two tracers: the kernel through tracefs, and probed."""

import os
from dataclasses import dataclass, field

from support import elf, formatted, maps, probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program
from support.tracefs import Tracefs, in_its_dialect

# The stack, and so every register that points there, depends on the environment.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C"}
GROUP = "{group}"  # in definitions; the kernel's is unique, ours is not seen by anybody


@dataclass
class Traced:
    records: list
    out: str
    code: int
    sites: list = field(default_factory=list)

    @property
    def jumps(self):
        return sum(site["mechanism"] == "optimized" for site in self.sites)


class Victim:
    """values.c, loaded at a fixed address, waiting before its first call. It stays on one CPU: the
    kernel keeps a buffer for each, and what one hit leaves in two of them it may show in either
    order, as their clocks are not the same."""

    def __init__(self, variant, rounds):
        self.path = target("values", f"gcc-O1-{variant}-nocf")
        self.program = Program([self.path, rounds, "wait"], env=ENVIRONMENT, fixed_addresses=True)

    def __enter__(self):
        self.program.wait_for("ready")
        os.sched_setaffinity(self.program.pid, {min(os.sched_getaffinity(self.program.pid))})
        return self

    def __exit__(self, *_):
        self.program.__exit__()

    def go(self):
        self.program.say("\n")
        return self.program.finish(60, close_input=False)

    def address(self, symbol):
        return maps.load_base(self.program.pid, self.path) + \
            elf.load(str(self.path)).symbols[symbol].address

    def offset(self, symbol):
        return elf.offset(self.path, symbol)


def by_kernel(variant, rounds, definitions, filters=None):
    """`filters` are expressions by event."""
    with Tracefs() as tracefs, Victim(variant, rounds) as victim:
        for line in definitions:
            tracefs.define(line.replace(GROUP, tracefs.group))
        for event, expression in (filters or {}).items():
            tracefs.filter(event, expression)
        tracefs.enable_all()
        code = victim.go()
        tracefs.disable_all()
        return Traced(tracefs.records(victim.program.pid), victim.program.out, code), \
            tracefs.profile()


def by_probed(variant, rounds, definitions, filters=None, *, jumps=False):
    """With jumps, sites are what they will be before the program's first call."""
    lines = [line.replace(GROUP, "kd") for line in definitions]
    with Daemon() as daemon, Victim(variant, rounds) as victim:
        daemon.optimize("on" if jumps else "off")
        with probectl.Attached(victim.program.pid, lines, "--dialect", "kernel",
                               address=daemon.address) as attached:
            for event, expression in (filters or {}).items():
                answer = daemon.run("filter", f"kd/{event}", expression)
                assert answer.code == 0, f"{expression}: {answer.err}"
            sites = daemon.settled_sites()
            code = victim.go()
            attached.finish()
            return Traced(attached.records, victim.program.out, code, sites)


def first_difference(kernel, ours):
    """A readable account of the first record that differs, or None."""
    for i, (theirs, mine) in enumerate(zip(kernel, ours)):
        if (theirs.event, theirs.text) != (mine.event, mine.text):
            pairs = zip(theirs.text.split(" "), mine.text.split(" "))
            words = [f"kernel {a!r} probed {b!r}" for a, b in pairs if a != b]
            return f"record {i}, {theirs.event} / {mine.event}: {words[:8]}"
    if len(kernel) != len(ours):
        return f"{len(kernel)} kernel records, {len(ours)} of ours"
    return None


class TwoTracers:
    """Mixed into test cases."""

    jumps = False

    def assert_same(self, variant, rounds, definitions, least, least_jumps=None, filters=None):
        """`least_jumps` is for tests that count on jumps everywhere, if at all, when None."""
        definitions = [in_its_dialect(line) for line in definitions]
        kernel, profile = by_kernel(variant, rounds, definitions, filters)
        ours = by_probed(variant, rounds, definitions, filters, jumps=self.jumps)
        self.assertGreaterEqual(len(kernel.records), least)
        self.assert_jumps(ours, least_jumps)
        self.assert_equal(kernel, ours)
        return kernel.records, profile

    def assert_jumps(self, ours, least):
        if not self.jumps:
            self.assertEqual(ours.jumps, 0)
        elif least is None:
            self.assertEqual(ours.jumps, len(ours.sites), [site["reason"] for site in ours.sites])
        else:
            self.assertGreaterEqual(ours.jumps, least)

    def assert_equal(self, kernel, ours):
        self.assertEqual((kernel.code, ours.code), (0, 0))
        self.assertEqual(kernel.out, ours.out)
        self.assertIsNone(first_difference(kernel.records, ours.records))
        self.assert_layout(kernel.records, ours.records)

    def assert_layout(self, kernel, ours):
        """Both print their parts in the same places, flags aside."""
        for theirs, mine in zip(kernel, ours):
            self.assertEqual(theirs.line, formatted.line(theirs, theirs.flags))
            self.assertEqual(mine.line, formatted.line(mine, "....."))
            self.assertEqual(theirs.comm, mine.comm)
