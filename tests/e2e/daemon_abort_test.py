"""The daemon ends in other ways than by SIGKILL: it aborts, dumping core or not, runs out of memory,
or the kernel takes it for want of memory."""

import contextlib
import os
import resource
import signal
import tempfile
import unittest
from pathlib import Path

from daemon_death_test import Hammer, has_ended, the_guard_of
from support import probectl
from support.daemon import Daemon
from support.process import status
from support.wait import wait_until

THREADS = 4
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern").read_text()


class Deaths(unittest.TestCase):
    def live_through(self, end, switch, under=()):
        """`end` (of a daemon, with its target) brings it to its end; how, as waitid(2) tells it."""
        with Hammer(THREADS, "gentle") as hammer, Daemon(under=under) as daemon:
            daemon.optimize(switch)
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0],
                                   address=daemon.address):
                daemon.settled_sites()
                hammer.wait_for_calls()
                guard = the_guard_of(daemon.program.pid)
                end(daemon, hammer)
                ended = os.waitid(os.P_PID, daemon.program.pid, os.WEXITED | os.WNOWAIT)
                wait_until(lambda: hammer.site_bytes() == hammer.original, 20, "own bytes")
                wait_until(lambda: has_ended(guard), 20, "the guard ends by itself")
            hammer.assert_clean(self)
            hammer.assert_goes_on(self)
            return ended.si_code, ended.si_status

    def test_fatal_signals(self):
        """Targets do not wait until core is dumped: a copy does that, if anybody wants it."""
        for number, switch in ((signal.SIGABRT, "off"), (signal.SIGSEGV, "on")):
            with self.subTest(number), tempfile.TemporaryDirectory(prefix="probed-core-") as folder:
                under = ["sh", "-c", f'cd {folder} && ulimit -c unlimited && exec "$@"', "sh"]
                how = self.live_through(lambda daemon, _: daemon.program.signal(number), switch,
                                        under)
                self.assertEqual(how, (os.CLD_KILLED, number), "core was not dumped by itself")
                if CORE_PATTERN.startswith("core"):
                    wait_until(lambda: list(Path(folder).glob("core*")), 20, "a core file")

    def test_has_no_more_memory(self):
        """Whatever it needs next, it does not get. It may refuse that, and live."""
        def starve(daemon, hammer):
            room = int(status(daemon.program.pid, "VmSize").split()[0]) << 10
            resource.prlimit(daemon.program.pid, resource.RLIMIT_AS, (room, room))
            lines = "".join(f"p:many/x{i} {hammer.path}:twice n=%di\n" for i in range(5000))
            with contextlib.suppress(AssertionError):
                daemon.run("define", "--quiet", "--pid", str(hammer.pid), "-f", "-", stdin=lines,
                           seconds=5)
            os.kill(daemon.program.pid, signal.SIGABRT)  # it may have ended: nobody has waited
        self.assertEqual(self.live_through(starve, "on"), (os.CLD_KILLED, signal.SIGABRT))


if __name__ == "__main__":
    unittest.main()
