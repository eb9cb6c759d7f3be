"""A Go program under memory pressure with a thousand goroutines: stacks are moved and looked
through all the time while entries and returns are probed. PROBED_SOAK=1: for minutes."""

import re
import unittest

from oracle import SOAK, Oracle
from support import elf
from support.paths import target
from support.process import run


class Pressure(Oracle):
    # Of breakpoints a round takes some 10 s on a busy machine.
    ROUNDS = {"off": 20, "on": 60} if SOAK else {"off": 2, "on": 2}
    FUNCTIONS = ("main.walk", "main.link", "main.recovers", "main.panics",
                 "runtime.newstack", "runtime.gcDrain", "runtime.mallocgc", "runtime.gopanic")

    def test_counts_and_checksum(self):
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization):
                self.counts_and_checksum(optimization, str(self.ROUNDS[optimization]))

    def counts_and_checksum(self, optimization, rounds):
        path = target("pressure-go")
        native = run([path, rounds], 120)
        self.assertEqual(native.code, 0, native.err)
        self.assertIn(" wrong 0\n", native.out)
        walks, links, recovered = map(int, re.findall(r"(?:walks|links|recovered) (\d+)",
                                                      native.out))
        lines = [f"{kind}:o/{kind}_{name.split('.')[1]} {path}:{elf.offset(path, name):#x}"
                 for kind in "pr" for name in self.FUNCTIONS if name != "runtime.gopanic"]
        program = self.probed([path, rounds], lines, optimization, seconds=900)
        self.assertEqual((program.code, program.out), (0, native.out), program.err[-2000:])
        hits = {name.removeprefix("o/"): count for name, count in program.hits.items()}
        self.assertEqual(hits["r_walk"], walks)
        self.assertEqual(hits["r_link"], links)
        self.assertEqual(hits["r_recovers"], recovered)
        # An entry is hit again where its function begins anew on a stack that has grown.
        self.assertGreater(hits["p_walk"], walks)
        self.assertGreater(hits["p_newstack"], 20 * self.ROUNDS[optimization])


if __name__ == "__main__":
    unittest.main()
