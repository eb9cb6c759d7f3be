"""Programs of musl, with probes on all functions of theirs and of that C library."""

import os
import unittest

from oracle import Oracle, definitions
from support.paths import target

LIBRARY = os.path.realpath("/lib/ld-musl-x86_64.so.1")
PROGRAMS = {"threads": ["8", "20"], "forker": ["2", "10"], "unwind": ["5"]}


class Musl(Oracle):
    def test_static(self):
        for name, arguments in PROGRAMS.items():
            path = target(f"{name}-static-musl-O2-nopie-nocf")
            with self.subTest(path.name):
                self.same([path, *arguments], definitions(path), step=3)

    def test_by_its_dynamic_linker(self):
        for name, arguments in PROGRAMS.items():
            path = target(name, "musl-O2-pie-nocf")
            with self.subTest(path.name):
                self.same([path, *arguments], definitions(path) + definitions(LIBRARY), step=20)


if __name__ == "__main__":
    unittest.main()
