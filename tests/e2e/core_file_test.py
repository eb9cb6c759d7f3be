"""The core file of a program that dies in the middle of calls whose returns are waited for: a debugger
finds the program's own return addresses in it."""

import contextlib
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program

CORE_PATTERN = Path("/proc/sys/kernel/core_pattern").read_text()


@unittest.skipUnless(CORE_PATTERN.startswith("core"), "core files go elsewhere here")
class CoreFiles(unittest.TestCase):
    def calls_in_core(self, how, trace=lambda pid: contextlib.nullcontext()):
        """What gdb finds on the stacks of a program that has died under that: the last is the one that did."""
        path = target("dumps")
        with tempfile.TemporaryDirectory(prefix="probed-core-") as folder:
            with Program(["sh", "-c", 'ulimit -c unlimited && exec "$@"', "sh", path, how, "wait"],
                         cwd=folder) as program:
                program.wait_for("ready")
                with trace(program.pid):
                    program.say("\n")
                    program.finish(30)
            core = next(Path(folder).glob("core*"))
            walk = ["gdb", "-nx", "-batch", "-ex", "thread apply all bt", "-c", core, path]
            found = subprocess.run(walk, capture_output=True, text=True, timeout=60, check=True)
            calls = [re.findall(r"^#\d+ .*?(\w+) \(", thread, re.M)
                     for thread in found.stdout.split("\nThread ")[1:]]
            # What the first are doing in the library at that moment may differ.
            return [names[names.index("descend"):] for names in calls]

    def test_stack(self):
        line = f"r:e/r {target('dumps')}:descend"
        for how in ("abort", "segv", "trap"):
            native = self.calls_in_core(how)
            waits, dies = native
            self.assertEqual(dies[-10:], ["descend"] * 9 + ["main"])
            self.assertEqual([name for name in waits if name == "descend"], ["descend"] * 6)
            for optimization, mechanism in (("off", "boosted"), ("on", "optimized")):
                @contextlib.contextmanager
                def trace(pid):
                    with Daemon() as daemon:
                        daemon.optimize(optimization)
                        with probectl.Attached(pid, [line], address=daemon.address):
                            self.assertEqual({site["mechanism"] for site in daemon.settled_sites()},
                                             {mechanism})
                            yield
                with self.subTest(how, optimization=optimization):
                    self.assertEqual(self.calls_in_core(how, trace), native)


if __name__ == "__main__":
    unittest.main()
