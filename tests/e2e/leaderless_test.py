"""Processes whose first thread has ended before the others: what /proc has under their number is
without memory, files and directories then."""

import os
import signal
import unittest

from support import maps, probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program, status, threads
from support.wait import wait_until

PATH = target("leaderless")


def living(pid):
    return next(tid for tid in threads(pid) if tid != pid)


def own_bytes(pid):
    wait_until(lambda: int(status(living(pid), "TracerPid")) == 0, 20, "nobody traces it")
    return maps.changed_text(living(pid)) == []


class Leaderless(unittest.TestCase):
    def attached(self, program, daemon, *definitions):
        return probectl.Attached(program.pid, definitions, address=daemon.address,
                                 output_format="json")

    def values(self, session, event):
        return [hit["args"] for hit in session.objects if hit.get("event") == event]

    def follow(self, switch):
        with Program([PATH]) as program, Daemon() as daemon:
            program.wait_for("ready")
            self.assertEqual(status(program.pid, "State")[0], "Z")
            daemon.optimize(switch)
            with self.attached(program, daemon, f"p:e/in {PATH}:work text=+0(%di):string",
                               f"r:e/out {PATH}:work value=$retval:s64") as session:
                if switch == "on":
                    self.assertTrue(all(site["mechanism"] == "optimized"
                                        for site in daemon.settled_sites()))
                program.say("x\n")
                program.wait_for("calls 100\n")
                wait_until(lambda: len(self.values(session, "out")) == 100, 20, "hits are shown")
                self.assertEqual(session.detach(), 0, session.program.err)
                self.assertEqual(self.values(session, "in"), [{"text": "some text"}] * 100)
                self.assertEqual(self.values(session, "out"),
                                 [{"value": number + 9} for number in range(1, 101)])
            self.assertTrue(own_bytes(program.pid))
            program.say("x\n")
            program.wait_for("calls 200\n")
            self.assertEqual(program.finish(20), 0)

    def test_breakpoints(self):
        self.follow("off")

    def test_jumps(self):
        self.follow("on")

    def test_a_library_that_comes_later(self):
        plugin = target("plugin")
        with Program([PATH]) as program, Daemon() as daemon:
            program.wait_for("ready")
            with self.attached(program, daemon, f"p:e/late {plugin}:plugin_work n=%di:s64") as session:
                program.say(f"o{plugin}\n")
                program.wait_for("calls 100\n")
                wait_until(lambda: len(self.values(session, "late")) == 100, 20, "hits are shown")
                self.assertEqual(session.detach(), 0, session.program.err)
            self.assertTrue(own_bytes(program.pid))
            self.assertEqual(program.finish(20), 0)

    def test_daemon_killed(self):
        for switch in ("off", "on"):
            with self.subTest(switch), Program([PATH]) as program, Daemon() as daemon:
                program.wait_for("ready")
                daemon.optimize(switch)
                with self.attached(program, daemon, f"p:e/in {PATH}:work", f"r:e/out {PATH}:work"):
                    daemon.settled_sites()
                    self.assertNotEqual(maps.changed_text(living(program.pid)), [])
                    os.kill(daemon.program.pid, signal.SIGKILL)
                    wait_until(lambda: own_bytes(program.pid), 20, "own bytes")
                program.say("x\n")
                program.wait_for("calls 100\n")
                self.assertEqual(program.finish(20), 0)


if __name__ == "__main__":
    unittest.main()
