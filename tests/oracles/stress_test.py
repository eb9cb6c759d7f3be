"""stress-ng, whose stressors verify what they do: processes, signals, stacks and code of all kinds,
with probes on every function of it and of the C library, entries and returns."""

import os
import re
import tempfile
import unittest

from oracle import LIBC, SOAK, Oracle, definitions, some
from support.process import run

STRESS = "/usr/bin/stress-ng"

# Name and bogo operations. PROBED_SOAK=1 runs all of them.
QUICK = {"context": 200, "sigtrap": 300, "signest": 100, "funcret": 3, "fork": 30, "sigpipe": 30,
         "clone": 10, "dynlib": 5, "futex": 100}
MORE = {"clone": 30, "vforkmany": 30, "dynlib": 20, "futex": 300, "vfork": 50, "sigq": 300,
        "timer": 100, "sigsegv": 200, "sigrt": 200, "sigsuspend": 100, "sigchld": 50,
        "sigfpe": 200, "sigfd": 200, "sigio": 50, "sigabrt": 20, "wait": 20, "pthread": 20,
        "longjmp": 100, "mmapaddr": 50, "bad-altstack": 20, "daemon": 5, "kill": 50,
        "rseq": 50, "spawn": 10, "zombie": 50, "stack": 20, "set": 20, "io-uring": 20, "aio": 20,
        "eventfd": 100, "sem": 50, "sem-sysv": 50, "mq": 50, "msg": 50, "pipe": 100, "sock": 5}


def verdict(program):
    """Without process ids and times, and without lines that probectl adds."""
    lines = re.findall(r"^stress-ng: (\w+) *: *\[\d+\] (.*)$", program.err, re.M)
    return sorted(f"{kind} {re.sub(r'in [0-9.]+s.*', '', text)}" for kind, text in lines)


class Stress(Oracle):
    def stressor(self, name, operations):
        folder = tempfile.TemporaryDirectory(prefix="probed-stress-")
        self.addCleanup(folder.cleanup)
        command = [STRESS, f"--{name}", "1", f"--{name}-ops", str(operations), "--verify",
                   "--timeout", "60", "--temp-path", folder.name]
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        native = run(command, 120, env=env, cwd=folder.name)
        if "No stress workers invoked" in native.err:
            self.skipTest(f"not to be had here: {native.err.splitlines()[0]}")
        lines = some(definitions(STRESS), 8) + some(definitions(LIBC), 4)
        native = self.same(command, lines, verdict, least=100, seconds=180, env=env,
                           cwd=folder.name)
        self.assertEqual(native.code, 0, native.err)
        self.assertIn("successful run completed", native.err)


def add(name, operations):
    def test(self):
        self.stressor(name, operations)
    setattr(Stress, f"test_{name.replace('-', '_')}", test)


for one in (QUICK | MORE if SOAK else QUICK).items():
    add(*one)

if __name__ == "__main__":
    unittest.main()
