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

    def test_filters_and_sampling_stay_in_the_program(self):
        path = target("threads")
        with Daemon() as daemon, Program([path, "4", "0", "until"]) as program:
            program.wait_for("ready")
            pid = ("-p", str(program.pid))
            self.attach(daemon, program, f"p:e/step {path}:step n=%di:u64")

            def counters(event):
                lines = daemon.run("list", *pid, "--json").out.splitlines()
                probe = next(one for one in map(json.loads, lines) if one["event"] == event)
                dropped = probe["recorded"] + probe["filtered"] + probe["sampled_out"]
                self.assertEqual(probe["hits"], dropped)
                return probe

            self.assertEqual(daemon.run("filter", "e/step", "n == 1").code, 0)
            self.becomes(daemon, "optimized")
            wait_until(lambda: counters("step")["filtered"] > 0, 30, "hits are filtered")
            more = daemon.run("define", *pid, "-e", f"p:e/few {path}:step n=%di:u64",
                              "--sample", "1/100", "--rate", "10/s")
            self.assertEqual(more.code, 0, more.err)
            self.assertIn("  1/100  10/s", daemon.run("list", *pid).out)
            self.becomes(daemon, "optimized")
            wait_until(lambda: counters("few")["sampled_out"] > 1000, 30, "hits are sampled out")
            self.assertIn("sampled out", daemon.run("profile", *pid).out)
            self.assertEqual(daemon.run("filter", "e/step", "COMM != 'x'").code, 0)
            self.becomes(daemon, "boosted")
            wait_until(lambda: "a filter on COMM needs the daemon" in daemon.run("sites").out, 30,
                       "the site says what keeps it")
            self.assertEqual(daemon.run("detach", *pid).code, 0)
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
