"""The daemon is killed just before one of the system calls by which it changes a target, whichever
it is: the target lives on, and everything of ours leaves it."""

import os
import random
import tempfile
import unittest

from daemon_death_test import Hammer
from support import maps
from support.daemon import Daemon
from support.paths import DIES_AT
from support.process import status, threads
from support.wait import wait_until

THREADS = 4
# All of them is for ./dev soak.
DEATHS = int(os.environ.get("PROBED_CALL_DEATHS", "12"))


def has_guard(folder):
    """Whether a guard process still has a journal in this folder open."""
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and status(name, "Name") == "probed-guard" and \
                    os.readlink(f"/proc/{name}/fd/4").startswith(folder):
                return True
        except OSError:
            pass  # it has gone
    return False


def masks(pid):
    return {tid: status(tid, "SigBlk") for tid in threads(pid)}


class DeathAtCalls(unittest.TestCase):
    def run_daemon(self, hammer, folder, last_call):
        """A life with everything in it that changes a target. Returns the calls that it made."""
        definitions = "".join(line + "\n" for line in hammer.definitions)
        pid = hammer.pid
        with Daemon(runtime_directory=folder, under=[DIES_AT, last_call], patient=True) as daemon:
            def has_ended():
                return daemon.program.process.poll() is not None

            def run(*words, stdin=None):
                answer = daemon.run(*words, stdin=stdin)
                self.assertTrue(answer.code == 0 or last_call != 0, answer.err)
                return answer.code == 0

            def settle():
                if not has_ended():
                    daemon.settled_sites(tolerant=True)

            if run("attach", "--pid", pid):
                run("define", "--pid", pid, "-f", "-", stdin=definitions)
                settle()
                run("optimization", "off")
                run("optimization", "on")
                settle()
                run("detach", "--pid", pid)
            if not has_ended():
                daemon.program.signal(15)
            daemon.program.wait_for("calls ", 20)
            return int(daemon.program.out.split("calls ")[1].split()[0])

    def check(self, hammer, folder, before):
        wait_until(lambda: not has_guard(folder), 30, "the guard has done its work")
        hammer.assert_clean(self)
        hammer.assert_goes_on(self)
        self.assertEqual(masks(hammer.pid), before)

    def test_everywhere(self):
        with Hammer(THREADS, "gentle") as hammer, tempfile.TemporaryDirectory() as folder:
            hammer.assert_goes_on(self)  # every thread has begun, and let signals in
            before = masks(hammer.pid)
            calls = self.run_daemon(hammer, folder, 0)
            self.check(hammer, folder, before)
            self.assertGreater(calls, 100)
            stride = calls / DEATHS
            for i in range(DEATHS):
                last = 1 + int(stride * (i + random.random()))
                with self.subTest(killed_before_call=last, of=calls):
                    self.run_daemon(hammer, folder, last)
                    self.check(hammer, folder, before)
            self.assertEqual(maps.changed_text(hammer.pid), [])
            self.assertEqual(hammer.program.finish(10), 0)


if __name__ == "__main__":
    unittest.main()
