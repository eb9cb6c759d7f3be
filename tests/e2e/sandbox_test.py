"""Programs that have shut themselves in: no system call of ours, and no signal for one."""

import unittest

from support import elf, maps, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, is_running_free, status
from support.wait import wait_until


class Sandboxes(unittest.TestCase):
    """How: by a filter that few calls pass, or strictly, which leaves four."""

    def setUp(self):
        self.path = target("sandboxed")
        self.lines = [f"p:e/p {self.path}:work n=%di:u64", f"r:e/r {self.path}:work v=$retval:u64"]

    def each(self, check):
        for how in ("filter", "strict"):
            for optimization in ("off", "on"):
                with self.subTest(how, optimization=optimization), Daemon() as daemon, \
                        Program([self.path, how, "wait"]) as program:
                    daemon.optimize(optimization)
                    program.wait_for("ready\n")
                    self.calls = 0
                    check(program, daemon)

    def attached(self, program, daemon, lines):
        site = maps.load_base(program.pid, self.path) + elf.load(str(self.path)).symbols[
            "work"].address
        return probectl.Attached(program.pid, lines, armed=site, address=daemon.address)

    def confine(self, program):
        program.say("\n")
        program.wait_for("confined 0\n")
        self.assertIn(status(program.pid, "Seccomp"), ("1", "2"))

    def work(self, program):
        program.say("x")
        self.calls += 100
        program.wait_for(f"calls {self.calls}\n")

    def assert_unharmed(self, program):
        wait_until(lambda: is_running_free(program.pid), 10, "it runs free")
        self.assertEqual(maps.changed_text(program.pid), [])
        self.work(program)
        self.assertEqual(program.finish(20), 0, program.out)
        self.assertTrue(program.out.endswith("wrong 0\n"), program.out)

    def test_that_begin_under_probes(self):
        """As the child of a server that was attached to: what stands in it stays, and works."""
        def check(program, daemon):
            with self.attached(program, daemon, self.lines) as session:
                daemon.settled_sites()
                self.confine(program)
                self.work(program)
                self.work(program)
                session.wait_for_records(400)
                self.assertEqual(session.detach(), 0, session.program.err)
                self.assertEqual(trace.counts(session.records), {"p": 200, "r": 200})
            self.assert_unharmed(program)
        self.each(check)

    def test_that_end_under_probes(self):
        def check(program, daemon):
            with self.attached(program, daemon, self.lines) as session:
                daemon.settled_sites()
                self.confine(program)
                self.work(program)
                self.assertEqual(program.finish(20), 0, program.out)
                self.assertTrue(program.out.endswith("wrong 0\n"), program.out)
                self.assertEqual(session.finish(20), 0, session.program.err)
                self.assertEqual(trace.counts(session.records), {"p": 100, "r": 100})
        self.each(check)

    def test_that_are_there(self):
        """Nothing of ours has memory in it: what needs some is refused, and says why."""
        def check(program, daemon):
            self.confine(program)
            before = maps.maps(program.pid)
            refused = daemon.run("attach", "--pid", str(program.pid), "-e", self.lines[1],
                                 "--duration", "1")
            self.assertNotEqual(refused.code, 0)
            self.assertIn("SECCOMP_ACTIVE", refused.err)
            entry = daemon.run("attach", "--pid", str(program.pid), "-e", self.lines[0],
                               "--duration", "0.2")
            if entry.code != 0:
                self.assertIn("SECCOMP_ACTIVE", entry.err)
            self.work(program)
            self.assertEqual(maps.foreign_mappings(program.pid, before), [])
            self.assert_unharmed(program)
        self.each(check)


if __name__ == "__main__":
    unittest.main()
