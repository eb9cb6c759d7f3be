"""A probe on every instruction of the self-checking functions at once: the program's output stays
what it was and every probe counts what a single-stepping tracer counted.

PROBED_SWEEP names the build (compiler-level-link-cet), e.g. gcc-O2-pie-cf.
"""

import os
import unittest

from support import disassembly, elf, probectl, stepping, trace
from support.paths import target
from support.process import run

VARIANT = os.environ.get("PROBED_SWEEP", "gcc-O2-pie-nocf")


def is_swept(name):
    return name.startswith("sw_")


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = target("sweep", VARIANT)
        cls.native = run([cls.path])
        instructions = disassembly.boundaries(cls.path, is_swept)
        # ud2 is refused by name (tests/e2e); nothing here gets to it.
        cls.text = {at: text for at, _, text in instructions if not text.startswith("ud2")}
        cls.truth = stepping.count(cls.path, list(cls.text))

    def run_probed(self, definitions):
        with probectl.run(definitions, [self.path]) as session:
            code = session.finish(90)
            self.assertEqual((code, session.program.out), (self.native.code, self.native.out),
                             session.program.err)
            return trace.counts(session.records)

    def test_truth_is_worth_something(self):
        self.assertEqual((self.truth.code, self.truth.out), (self.native.code, self.native.out))
        self.assertGreater(len(self.text), 1000)
        self.assertGreater(len(self.truth.visits), 900)

    def test_every_instruction(self):
        counts = self.run_probed([f"p:sweep/x{at:x} {self.path}:{at:#x}" for at in self.text])
        wrong = [f"{at:#x} {text}: {counts[f'x{at:x}']} hits, {self.truth.visits.get(at, 0)} visits"
                 for at, text in self.text.items()
                 if counts[f"x{at:x}"] != self.truth.visits.get(at, 0)]
        self.assertEqual(wrong[:20], [], f"{len(wrong)} of {len(self.text)} differ")

    def test_every_function_return(self):
        """Return probes on all functions: output unchanged, entries as counted."""
        functions = {s.offset: s.name for s in elf.load(str(self.path)).symbols.values()
                     if is_swept(s.name) and s.size and s.offset in self.text}
        counts = self.run_probed(
            [f"{kind}:sweep/{kind}{at:x} {self.path}:{at:#x}" for at in functions
             for kind in "pr"])
        for at, name in functions.items():
            visits = self.truth.visits.get(at, 0)
            self.assertEqual(counts[f"p{at:x}"], visits, name)
            if name == "sw_dig":  # left by longjmp
                self.assertEqual(counts[f"r{at:x}"], 0, name)
            else:
                self.assertEqual(counts[f"r{at:x}"], visits, name)


if __name__ == "__main__":
    unittest.main()
