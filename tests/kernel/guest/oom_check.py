"""The kernel kills the daemon for want of memory, in the middle of its work."""

import os
import signal
import unittest
from pathlib import Path

from daemon_death_test import Hammer, guards_of, has_ended
from support import probectl
from support.daemon import Daemon
from support.wait import wait_until

ROOT = Path("/sys/fs/cgroup")
STEP = 1 << 20


class OutOfMemory(unittest.TestCase):
    """What the daemon's control group may have becomes less, until the kernel ends it. The guard is
    outside: the kernel may go on to that one before the first has given anything back."""

    def setUp(self):
        if not (ROOT / "cgroup.controllers").exists():
            self.assertEqual(os.system(f"mount -t cgroup2 none {ROOT}"), 0)
        (ROOT / "cgroup.subtree_control").write_text("+memory")
        self.group = ROOT / "probed"
        self.group.mkdir()
        self.addCleanup(self.group.rmdir)

    def kills(self):
        return int((self.group / "memory.events.local").read_text().split("oom_kill ")[1].split()[0])

    def shrink(self, daemon):
        before, limit = self.kills(), int((self.group / "memory.current").read_text())
        while limit > 0 and self.kills() == before:
            limit -= STEP
            (self.group / "memory.max").write_text(str(limit))
        self.assertEqual(daemon.program.finish(20), -signal.SIGKILL)
        (self.group / "memory.max").write_text("max")
        self.assertGreater(self.kills(), before)

    def test_targets_go_on(self):
        into = ["sh", "-ec", f'echo $$ >{self.group}/cgroup.procs; exec "$@"', "sh"]
        with Hammer(4) as hammer:
            for switch in ("off", "on"):
                with self.subTest(switch), Daemon(under=into) as daemon:
                    daemon.optimize(switch)
                    with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0],
                                           address=daemon.address):
                        hammer.wait_for_calls()
                        guards = wait_until(lambda: guards_of(daemon.program.pid), 60, "a guard")
                        for guard in guards:
                            (ROOT / "cgroup.procs").write_text(str(guard))
                        self.shrink(daemon)
                    wait_until(lambda: hammer.site_bytes() == hammer.original, 60, "own bytes")
                    hammer.assert_clean(self)
                    hammer.assert_goes_on(self)
                    wait_until(lambda: all(map(has_ended, guards)), 60, "the guard ends by itself")
            self.assertEqual(hammer.program.finish(20), 0)


if __name__ == "__main__":
    unittest.main()
