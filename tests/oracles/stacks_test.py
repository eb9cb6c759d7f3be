"""Stacks and calls that are not as usual, with probes on all functions: programs that check themselves."""

import unittest

from oracle import Oracle, definitions
from support import elf
from support.paths import target


class Stacks(Oracle):
    def test_calls(self):
        """Wrappers of a few bytes, nested functions of gcc, handlers on stacks of their own."""
        rounds = 200
        for level in ("O0", "O2"):
            path = target("awkward", f"gcc-{level}-pie-nocf")
            with self.subTest(path.name):
                native = self.same([path, str(rounds)], definitions(path), least=1000)
                self.assertIn(" wrong 0\n", native.out)
                lines = [f"{kind}:o/{kind}_{name} {path}:{elf.offset(path, name):#x}" for kind in "pr"
                         for name in ("wrap", "hop", "skip")]
                for optimization in ("off", "on"):
                    hits = self.probed([path, str(rounds)], lines, optimization).hits
                    wraps = rounds + int(native.out.split("handled ")[1].split()[0]) // 7
                    self.assertEqual(hits, {f"o/{kind}_{name}": wraps if name == "wrap" else rounds
                                            for kind in "pr" for name in ("wrap", "hop", "skip")})

    def test_fibers(self):
        """Of Boost.Context: in turn, in other threads, unwound, given up, with calls on top."""
        for compiler in ("gcc", "clang"):
            try:
                path = target("fibers", f"{compiler}-O2-pie-nocf")
            except FileNotFoundError:
                self.skipTest("Boost.Context is not here")
            with self.subTest(path.name):
                self.same([path], definitions(path), least=1000, step=2)


if __name__ == "__main__":
    unittest.main()
