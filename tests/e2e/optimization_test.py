"""Jumps in the place of breakpoints, seen from outside: the switch, and a daemon that is killed."""

import json
import os
import signal
import unittest

from support import maps
from support.daemon import Daemon
from support.paths import target
from support.process import Program, tracer_of
from support.wait import wait_until


class Optimization(unittest.TestCase):
    def sites(self, daemon):
        answer = daemon.run("sites", "--json")
        self.assertEqual(answer.code, 0, answer.err)
        return [json.loads(line) for line in answer.out.splitlines()]

    def becomes(self, daemon, mechanism):
        wait_until(lambda: all(site["mechanism"] == mechanism for site in self.sites(daemon)), 30,
                   f"all sites are {mechanism}")

    def attach(self, daemon, program, definition):
        self.assertEqual(daemon.run("optimization", "on").out, "on\n")
        pid = ("-p", str(program.pid))
        for words in (("attach", *pid), ("define", *pid, "-e", definition)):
            answer = daemon.run(*words)
            self.assertEqual(answer.code, 0, answer.err)
        self.becomes(daemon, "optimized")

    def test_the_switch_changes_sites_that_exist(self):
        path = target("threads")
        with Daemon() as daemon, Program([path, "4", "0", "until"]) as program:
            program.wait_for("ready")
            self.attach(daemon, program, f"p:e/step {path}:step n=%di:u64")
            self.assertIn("[OPTIMIZED]", daemon.run("sites").out)
            self.assertEqual(daemon.run("optimization", "off").out, "off\n")
            self.assertNotIn("[OPTIMIZED]", daemon.run("sites").out)
            self.assertIn("optimization is off", daemon.run("sites").out)
            self.assertEqual(daemon.run("optimization", "status").out, "off\n")
            daemon.run("optimization", "on")
            self.becomes(daemon, "optimized")
            self.assertEqual(daemon.run("detach", "-p", str(program.pid)).code, 0)
            self.assertEqual(maps.changed_text(program.pid), [])
            program.say("\n")
            self.assertEqual(program.finish(60), 0)
            self.assertRegex(program.out, r"calls \d+ sum ok\n$")

    def test_a_killed_daemon_leaves_jumps_that_do_nothing(self):
        path = target("threads")
        with Daemon() as daemon, Program([path, "64", "0", "until"]) as program:
            program.wait_for("ready")
            self.attach(daemon, program, f"p:e/step {path}:step n=%di:u64")
            os.kill(daemon.program.pid, signal.SIGKILL)
            daemon.program.finish(10)
            wait_until(lambda: tracer_of(program.pid) == 0, 10, "nobody traces it")
            program.say("\n")
            self.assertEqual(program.finish(60), 0, program.err)
            self.assertRegex(program.out, r"calls \d+ sum ok\n$")


if __name__ == "__main__":
    unittest.main()
