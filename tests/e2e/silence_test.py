"""A target keeps the tracer waiting for ever: the others are not to wait with it."""

import os
import tempfile
import unittest

from support import elf, maps, probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program, tracer_of
from support.wait import wait_until

SECONDS = 2


class Silence(unittest.TestCase):
    def assert_given_back(self, program):
        wait_until(lambda: tracer_of(program.pid) == 0, 10, "nobody traces it")
        wait_until(lambda: maps.changed_text(program.pid) == [], 10, "own bytes")

    def test_memory_that_nobody_provides(self):
        """The tracer reads it (userfaultfd(2)), which no signal but a fatal one ends."""
        absent, other = target("absent"), target("churn")
        with Program([absent, "wait"]) as waiter, Program([other, "40", "wait"]) as bystander, \
                tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
            config.write(f"[limits]\nmax_silence_seconds = {SECONDS}\n")
            config.flush()
            wait_until(lambda: waiter.out or waiter.process.poll() is not None, 10, "it begins")
            if waiter.process.poll() == 77:
                self.skipTest("userfaultfd(2) is refused here")
            bystander.wait_for("ready")
            with Daemon(options=("--config", config.name)) as daemon:
                daemon.optimize("off")
                step = maps.load_base(bystander.pid, other) + elf.load(str(other)).symbols["step"].address
                look = maps.load_base(waiter.pid, absent) + elf.load(str(absent)).symbols["look"].address
                with probectl.Attached(bystander.pid, [f"p:e/step {other}:step"], armed=step,
                                       address=daemon.address), \
                        probectl.Attached(waiter.pid, [f"p:e/look {absent}:look x=+0(%di):u64"],
                                          armed=look, address=daemon.address):
                    waiter.say("x\nx\n")
                    wait_until(lambda: daemon.program.process.poll() is not None, 60,
                               "the daemon gives up")
                    self.assertIn("does not answer", daemon.program.err + daemon.program.out)
            self.assert_given_back(bystander)
            self.assert_given_back(waiter)
            waiter.wait_for("looks 2\n")
            bystander.say("x")
            self.assertEqual(bystander.finish(20), 0)
            self.assertIn("calls 40\n", bystander.out)
            self.assertEqual(waiter.finish(10), 0)


if __name__ == "__main__":
    unittest.main()
