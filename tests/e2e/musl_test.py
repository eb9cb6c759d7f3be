"""Programs of another C library, musl: linked statically and by its own dynamic linker."""

import os
import re
import signal
import unittest

from daemon_death_test import Hammer, the_guard_of
from support import elf, maps, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, is_running_free, run
from support.wait import wait_until

DYNAMIC, STATIC = "musl-O2-pie-nocf", "-static-musl-O2-nopie-nocf"


def both(name):
    return target(name, DYNAMIC), target(name + STATIC)


class Musl(unittest.TestCase):
    def test_they_are_what_they_are_called(self):
        """The C library of other tests is not in them."""
        for path in both("counter"):
            self.assertNotIn(b"GLIBC_", path.read_bytes())
        self.assertIn(b"/lib/ld-musl-x86_64.so.1", target("counter", DYNAMIC).read_bytes())

    def same_as_native(self, path, arguments, definitions):
        native = run([path, *arguments])
        self.assertEqual(native.code, 0, native.err)
        with probectl.run(definitions, [path, *arguments]) as session:
            code = session.finish(60)
            self.assertEqual((code, session.program.out), (native.code, native.out),
                             session.program.err)
            return session.records

    def test_attach_and_detach(self):
        """From the first recorded call to the last, none is missing; nothing is left."""
        for path in both("counter"):
            for optimization in ("off", "on"):
                with self.subTest(path.name, optimization=optimization), Daemon() as daemon:
                    daemon.optimize(optimization)
                    self.attach_and_detach(path, daemon)

    def attach_and_detach(self, path, daemon):
        with Program([path]) as program:
            program.wait_for("ready")
            before = maps.maps(program.pid)
            site = maps.load_base(program.pid, path) + elf.load(str(path)).symbols["work"].address
            lines = [f"p:e/w {path}:work n=%di:u64 s=+0(%si):string", f"r:e/r {path}:work v=$retval:u64"]
            with probectl.Attached(program.pid, lines, armed=site,
                                   address=daemon.address) as session:
                daemon.settled_sites()
                session.wait_for_records(200)
                self.assertEqual(session.detach(), 0, session.program.err)
                records = session.records
            entries = [record for record in records if record.event == "w"]
            numbers = [int(re.search(r"n=(\d+)", record.arguments)[1]) for record in entries]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            self.assertIn('s="counter"', entries[0].arguments)
            values = [int(record.arguments[2:]) for record in records if record.event == "r"]
            self.assertGreater(len(values), 50)
            self.assertEqual(values, [values[0] + 2 * i for i in range(len(values))])
            wait_until(lambda: is_running_free(program.pid), 10, "it runs free")
            self.assertEqual(maps.changed_text(program.pid), [])
            self.assertEqual(maps.foreign_mappings(program.pid, before), [])
            self.assertEqual(program.finish(20), 0, program.out)
            self.assertRegex(program.out, r"calls \d+ wrong 0\n$")

    def test_threads(self):
        for path in both("threads"):
            with self.subTest(path.name):
                records = self.same_as_native(path, ["16", "50"], [f"p:e/p {path}:step",
                                                                   f"r:e/r {path}:step"])
                self.assertEqual(trace.counts(records), {"p": 800, "r": 800})

    def test_children(self):
        for path in both("forker"):
            with self.subTest(path.name):
                records = self.same_as_native(path, ["4", "25"], [f"p:e/p {path}:work",
                                                                  f"r:e/r {path}:work"])
                self.assertEqual(trace.counts(records), {"p": 150, "r": 150})
                self.assertEqual(len({record.pid for record in records}), 5)

    def test_longjmp(self):
        for path in both("unwind"):
            with self.subTest(path.name):
                records = self.same_as_native(path, ["20"], [
                    f"{kind}:e/{kind}_{name} {path}:{name}" for kind in "pr"
                    for name in ("dive", "interrupted", "recurse")])
                counts = trace.counts(records)
                self.assertEqual(counts["p_recurse"], 20 * 201)
                self.assertEqual(counts["r_recurse"], 20 * 201)
                self.assertEqual((counts["r_dive"], counts["r_interrupted"]), (0, 0))

    def test_a_library_that_is_loaded_later(self):
        """Its linker never unloads anything: the second dlopen(3) maps nothing."""
        path, plugin = target("loader", DYNAMIC), target("plugin", DYNAMIC)
        records = self.same_as_native(path, [plugin, "50"], [f"p:e/p {plugin}:plugin_work n=%di",
                                                             f"r:e/r {plugin}:plugin_work"])
        self.assertEqual(trace.counts(records), {"p": 100, "r": 100})

    def test_a_library_that_is_loaded_after_an_attach(self):
        path, plugin = target("loader", DYNAMIC), target("plugin", DYNAMIC)
        with Program([path, plugin, "50", "wait"]) as program:
            program.wait_for("ready")
            with probectl.Attached(program.pid, [f"p:e/p {plugin}:plugin_work"]) as session:
                program.say("\n")
                self.assertEqual(program.finish(20, close_input=False), 0, program.out)
                self.assertEqual(session.finish(20), 0, session.program.err)
                self.assertEqual(len(session.records), 100)

    def test_the_daemon_is_killed(self):
        for path in both("hammer"):
            for optimization in ("off", "on"):
                with self.subTest(path.name, optimization=optimization):
                    self.kill_daemon(path, optimization)

    def kill_daemon(self, path, optimization):
        with Hammer(8, path=path) as hammer, Daemon() as daemon:
            daemon.optimize(optimization)
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0],
                                   address=daemon.address):
                daemon.settled_sites()
                hammer.wait_for_calls()
                guard = the_guard_of(daemon.program.pid)
                os.kill(daemon.program.pid, signal.SIGKILL)
                wait_until(lambda: hammer.site_bytes() == hammer.original, 20, "own bytes")
                wait_until(lambda: not os.path.exists(f"/proc/{guard}"), 20, "the guard ends")
            hammer.assert_clean(self)
            hammer.assert_goes_on(self)
            self.assertEqual(hammer.program.finish(10), 0)


if __name__ == "__main__":
    unittest.main()
