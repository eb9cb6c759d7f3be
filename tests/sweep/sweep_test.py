"""A probe on every instruction of the self-checking functions, as breakpoints all at once, as jumps
where they are not in each other's way: the program's output stays what it was and every probe counts
what a single-stepping tracer counted.

PROBED_SWEEP names the build (compiler-level-link-cet), e.g. gcc-O2-pie-cf.
"""

import os
import unittest
from collections import Counter

from support import disassembly, elf, probectl, stepping, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, run

VARIANT = os.environ.get("PROBED_SWEEP", "gcc-O2-pie-nocf")


def is_swept(name):
    return name.startswith("sw_")


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = target("sweep", VARIANT)
        cls.native = run([cls.path])
        # ud2 is refused by name (tests/e2e); nothing here gets to it.
        cls.instructions = [(at, len(code), text) for at, code, text in
                            disassembly.boundaries(cls.path, is_swept) if not text.startswith("ud2")]
        cls.text = {at: text for at, _, text in cls.instructions}
        cls.truth = stepping.count(cls.path, list(cls.text))
        cls.daemon = Daemon().__enter__()
        cls.addClassCleanup(cls.daemon.__exit__)

    def run_probed(self, definitions, switch):
        """(hits of each event, sites); with the switch "on", sites are jumps before the first hit."""
        self.daemon.optimize(switch)
        with Program([self.path, "wait"]) as program:
            program.wait_for("ready\n")
            with probectl.Attached(program.pid, definitions,
                                   address=self.daemon.address) as session:
                sites = self.daemon.settled_sites()
                program.say("\n")
                self.assertEqual(program.finish(90, close_input=False), self.native.code)
                self.assertEqual(program.out, "ready\n" + self.native.out)
                self.assertEqual(session.finish(90), 0, session.program.err)
                return trace.counts(session.records), sites

    def assert_visits(self, counts, offsets):
        wrong = [f"{at:#x} {self.text[at]}: {counts[f'x{at:x}']} hits, {visits} visits"
                 for at in offsets
                 if counts[f"x{at:x}"] != (visits := self.truth.visits.get(at, 0))]
        self.assertEqual(wrong[:20], [], f"{len(wrong)} of {len(offsets)} differ")

    def assert_jumps(self, sites, share):
        others = Counter(site["reason"] for site in sites if site["mechanism"] != "optimized")
        self.assertGreater(len(sites) - others.total(), share * len(sites), others.most_common(9))

    def test_truth_is_worth_something(self):
        self.assertEqual((self.truth.code, self.truth.out), (self.native.code, self.native.out))
        self.assertGreater(len(self.text), 1000)
        self.assertGreater(len(self.truth.visits), 900)

    def test_every_instruction(self):
        counts, _ = self.run_probed(self.definitions(self.text), "off")
        self.assert_visits(counts, self.text)

    def test_every_instruction_as_a_jump(self):
        sites = []
        for offsets in disassembly.apart([(at, length) for at, length, _ in self.instructions]):
            counts, more = self.run_probed(self.definitions(offsets), "on")
            self.assert_visits(counts, offsets)
            sites += more
        self.assertEqual(len(sites), len(self.text))
        self.assert_jumps(sites, 0.8)

    def definitions(self, offsets):
        return [f"p:sweep/x{at:x} {self.path}:{at:#x}" for at in offsets]

    def test_every_function_return(self):
        self.check_returns("off")

    def test_every_function_return_by_jumps(self):
        self.assert_jumps(self.check_returns("on"), 0.9)

    def check_returns(self, switch):
        """Return probes on all functions: output unchanged, entries as counted."""
        functions = {s.offset: s.name for s in elf.load(str(self.path)).symbols.values()
                     if is_swept(s.name) and s.size and s.offset in self.text}
        counts, sites = self.run_probed(
            [f"{kind}:sweep/{kind}{at:x} {self.path}:{at:#x}" for at in functions
             for kind in "pr"], switch)
        for at, name in functions.items():
            visits = self.truth.visits.get(at, 0)
            self.assertEqual(counts[f"p{at:x}"], visits, name)
            if name == "sw_dig":  # left by longjmp
                self.assertEqual(counts[f"r{at:x}"], 0, name)
            else:
                self.assertEqual(counts[f"r{at:x}"], visits, name)
        return sites


if __name__ == "__main__":
    unittest.main()
