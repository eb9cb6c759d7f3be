"""Probes on the entries of all functions of a file, in one program that runs on."""

import json
from collections import Counter

from support import elf
from support.wait import wait_until

_UD2 = b"\x0f\x0b"


def entries(path):
    """Offsets of the functions of a file; no probe can stand where one begins with ud2 (cold parts
    of functions that the compiler found unreachable)."""
    file = elf.load(path)
    return [at for at in file.function_starts() if file.bytes[at:at + 2] != _UD2]


def definitions(path, arguments=""):
    return [f"p:mass/f{at:x} {path}:{at:#x} {arguments}" for at in entries(path)]


class Target:
    """A program that a daemon has attached to."""

    def __init__(self, daemon, program):
        self._daemon = daemon
        self.pid = program.pid
        self.call("attach")

    def call(self, verb, *words, **more):
        answer = self._daemon.run(verb, "-p", str(self.pid), *words, seconds=120, **more)
        assert answer.code == 0, answer.err[-2000:]
        return answer.out

    def define(self, lines):
        self.call("define", "--quiet", "-f", "-", stdin="".join(line + "\n" for line in lines))

    def optimize(self, share=0.97):
        """Waits until that share of the sites are jumps. The rest is counted by the reasons."""
        reasons = Counter()

        def done():
            lines = self.call("sites").splitlines()
            optimized = sum("[OPTIMIZED]" in line for line in lines)
            reasons.clear()
            reasons.update(line for line in lines if "[OPTIMIZED]" not in line)
            return optimized > share * len(lines)
        wait_until(done, 100, f"{share:.0%} of the sites are jumps")

    def hits(self):
        """How often each function was entered, by its offset."""
        rows = (json.loads(line) for line in self.call("profile", "--json").splitlines())
        return {int(row["event"].removeprefix("f"), 16): int(row["hits"]) for row in rows}
