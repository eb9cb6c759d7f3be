"""Every way to unwind a stack with return probes on all of a program's functions: it prints what it
prints without, whoever compiled it and wherever its unwinder is."""

import subprocess
import unittest

from oracle import Oracle, definitions
from support.paths import target

CASES = ["thrown", "rethrown", "nested", "thread", "destructors", "constructors", "library",
         "foreign", "forced", "cancelled", "anywhere", "thread_exit", "backtraces", "handlers",
         "terminations", "exits", "coroutines", "many"]
# The C library loads an unwinder of its own for these, which does not get on with another.
NOT_WITH_ITS_OWN = {"library", "cancelled", "anywhere", "thread_exit", "exits"}


class Variants(Oracle):
    def variants(self, kind, cases=(), step=1):
        for compiler in ("gcc", "clang"):
            for level in ("O0", "O2"):
                link = "nopie" if kind == "-static" else "pie"
                path = target(f"unwinding{kind}", f"{compiler}-{level}-{link}-nocf")
                with self.subTest(path.name):
                    native = self.same([path, *cases], definitions(path), seconds=60, step=step)
                    self.assertEqual(native.code, 0, native.err)


class Unwinding(Variants):
    def test_shared_unwinder(self):
        self.variants("")

    def test_unwinder_linked_in(self):
        self.variants("-lgcc", [case for case in CASES if case not in NOT_WITH_ITS_OWN], step=20)

    def test_cases_are_all(self):
        path = target("unwinding", "gcc-O2-pie-nocf")
        native = subprocess.run([path], capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual([line for line in native.stdout.splitlines() if line[0] != " "], CASES)


class Static(Variants):
    """By `./dev soak oracles`: how some cases end without probes, too, is not the same each time."""

    def test_static(self):
        """With the C library's functions, and the unwinder's own."""
        self.variants("-static", [case for case in CASES if case not in NOT_WITH_ITS_OWN], step=20)


if __name__ == "__main__":
    unittest.main()
