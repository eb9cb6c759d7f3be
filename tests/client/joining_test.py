"""attach --join and --maps: processes that start, or map the file, while the trace runs."""

import os
import re
import shutil
import signal
import sys
import tempfile
import unittest
from pathlib import Path

from support import maps, probectl, trace
from support.daemon import Daemon
from support.paths import PROBECTL, target
from support.process import Program, is_running_free, tracer_of
from support.wait import wait_until


_OPENER = """
import ctypes, select, sys
print("ready", flush=True)
sys.stdin.readline()
work, calls = ctypes.CDLL(sys.argv[1]).plugin_work, 0
while not select.select([sys.stdin], [], [], 0.001)[0]:
    for _ in range(20):
        work(calls)
        calls += 1
print("calls", calls, "wrong 0")
"""


class Events:
    """A file of events that grows: each is read once."""

    def __init__(self, path):
        self.path, self.at, self.records = path, 0, []

    def read(self):
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self.at)
                new = file.read()
            whole = new[:new.rfind(b"\n") + 1]
            self.at += len(whole)
            self.records += trace.records(whole.decode("latin-1"))
        return self.records

    def numbers(self, pid):
        """What that process's hits recorded, in their order."""
        return [int(record.arguments[2:]) for record in self.read() if record.pid == pid]

    def names(self):
        return {record.event for record in self.read()}


class Joining(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # A file and a name that no other process has.
        self.path = shutil.copy(target("counter"), self.folder / f"join-{os.getpid()}")
        self.definition = f"p:e/w {self.path}:work n=%di:u64"

    def attach(self, *selection, definition=None):
        path = self.folder / "events"
        path.unlink(missing_ok=True)
        self.events = Events(path)
        words = [PROBECTL, "attach", *selection, "-e", definition or self.definition, "-o", path]
        program = Program(words, env=probectl.environment())
        self.addCleanup(program.__exit__)
        return program

    def start(self, path=None):
        program = Program([path or self.path])
        self.addCleanup(program.__exit__)
        program.wait_for("ready")
        return program

    def wait_for_hits(self, program, count=20):
        wait_until(lambda: len(self.events.numbers(program.pid)) >= count, 20,
                   f"hits of {program.pid}")

    def end(self, program):
        """Ends a member: from its first recorded call to its last, none is missing."""
        self.assertEqual(program.finish(20), 0, program.err)
        calls = int(re.search(r"calls (\d+) wrong 0\n$", program.out)[1])
        wait_until(lambda: self.events.numbers(program.pid)[-1:] == [calls - 1], 20, "its end")
        seen = self.events.numbers(program.pid)
        self.assertEqual(seen, list(range(seen[0], calls)))

    def test_a_duration_ends_the_waiting_too(self):
        for way in ("--join", "--wait"):
            with self.subTest(way):
                session = self.attach("--name", "no-such-name", way, "--duration", "0.5")
                self.assertEqual(session.finish(20), 0, session.err)
                self.assertEqual(session.err.splitlines()[1:],
                                 ["probectl: warning: no process matched --name no-such-name in 0.5 s"])

    def test_a_duration_ends_the_waiting_for_one_to_hold(self):
        """A script goes on with `define` only where there is a target."""
        with Daemon() as daemon:
            done = daemon.run("attach", "--name", "no-such-name", "--wait", "--duration", "0.5")
        self.assertEqual(done.code, 5, done.err)
        self.assertIn("no process matched --name no-such-name in 0.5 s\n", done.err)
        self.assertIn("why: NO_PROCESS_MATCHED", done.err)

    def test_an_interrupt_ends_the_waiting(self):
        """Nothing has begun: there is nothing to clean up, nor to complain about."""
        for way in ("--join", "--wait"):
            for signal_number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(way=way, signal=signal_number):
                    session = self.attach("--name", "no-such-name", way)
                    session.wait_for("waiting for a process that has --name", stream="err")
                    session.signal(signal_number)
                    self.assertEqual(session.finish(20), 0, session.err)
                    self.assertEqual(session.err.splitlines()[1:], ["probectl: no process came"])

    def test_the_end_of_the_daemon_ends_the_waiting(self):
        with Daemon() as daemon:
            session = self.attach("--name", "no-such-name", "--wait", "--address", daemon.address)
            session.wait_for("waiting for a process that has --name", stream="err")
            daemon.program.signal(signal.SIGTERM)
            self.assertEqual(session.finish(30), 3, session.err)

    def interrupt(self, session):
        session.signal(signal.SIGINT)
        self.assertEqual(session.finish(20), 0, session.err)

    def assert_summary(self, session, processes):
        """The counters of all together are the events that were written."""
        written = len(self.events.read())
        self.assertRegex(session.err, rf"{written} events in .*, 0 lost, 1 probe, "
                                      rf"{processes} processes?\n")
        self.assertRegex(session.err, rf"p:e/w  hits {written}  shown {written}  missed 0  lost 0\n")

    def test_members_come_and_go(self):
        for address in ("private", "shared"):
            with self.subTest(address):
                if address == "private":
                    self.members_come_and_go("private")
                    continue
                with Daemon() as daemon:
                    self.members_come_and_go(daemon.address)
                    self.assertEqual(daemon.run("list").out, "")

    def members_come_and_go(self, address):
        neighbour = self.start(target("counter"))
        same_file = self.start(shutil.copy(self.path, self.folder / "neighbour"))
        session = self.attach("--name", Path(self.path).name, "--join", "--address", address)
        session.wait_for("waiting for a process that has --name", stream="err")
        first = self.start()
        self.wait_for_hits(first)
        second = self.start()
        self.wait_for_hits(second)
        self.end(first)  # the trace goes on
        third = self.start()
        self.wait_for_hits(third)
        self.end(second)
        self.end(third)  # also when nobody is left
        fourth = self.start()
        self.wait_for_hits(fourth)
        for other in (neighbour, same_file):
            self.assertEqual(maps.changed_text(other.pid), [])
            self.assertEqual(tracer_of(other.pid), 0)
        self.interrupt(session)
        self.assert_summary(session, processes=4)
        name = re.escape(Path(self.path).name[:15])
        self.assertIn(f"attached to {first.pid} (", session.err)
        for joined in (second, third, fourth):
            self.assertRegex(session.err, rf"(?m)^probectl: joined {joined.pid} \({name}\)$")
        for ended in (first, second, third):
            self.assertRegex(session.err, rf"(?m)^probectl: {ended.pid} \({name}\) ended$")
        wait_until(lambda: is_running_free(fourth.pid), 10, "the last runs free")
        self.assertEqual(maps.changed_text(fourth.pid), [])
        self.assertEqual(fourth.finish(20), 0)
        for other in (neighbour, same_file):
            self.assertEqual(other.finish(20), 0)

    def test_two_traces_see_what_each_defined(self):
        """A process is in two sessions of one daemon: neither gets the other's hits."""
        with Daemon() as daemon:
            choice = ("--exe", self.path, "--join", "--address", daemon.address)
            first = self.start()
            session = self.attach(*choice)
            self.wait_for_hits(first)
            with probectl.Attached(first.pid, [self.definition.replace("e/w", "e/other")],
                                   address=daemon.address) as other:
                other.wait_for_records(20)
                self.assertEqual(self.events.names(), {"w"})
                self.assertEqual({record.event for record in other.records}, {"other"})
                self.assertEqual(other.detach(), 0)
            second = self.start()
            self.wait_for_hits(second)
            self.interrupt(session)
            self.assertEqual(self.events.names(), {"w"})
            self.assert_summary(session, processes=2)

    def test_every_process_that_maps_a_file(self):
        """A library: one process has it, one opens it later, one never does."""
        plugin = shutil.copy(target("plugin"), self.folder / "plugin.so")
        other = shutil.copy(target("plugin"), self.folder / "other.so")
        session = self.attach("--maps", plugin, definition=f"p:e/w {plugin}:plugin_work n=%di:u64")
        session.wait_for("waiting for a process that has --maps", stream="err")
        neighbour, first = self.open(other), self.open(plugin)
        self.wait_for_hits(first)
        second = self.open(plugin)
        self.wait_for_hits(second)
        self.assertEqual(maps.changed_text(neighbour.pid), [])
        self.assertEqual(tracer_of(neighbour.pid), 0)
        self.end(first)
        self.end(second)
        self.assertEqual(neighbour.finish(20), 0, neighbour.err)
        self.interrupt(session)
        self.assert_summary(session, processes=2)

    def open(self, plugin):
        """A process that opens the plugin late and calls it till its input ends."""
        program = Program([sys.executable, "-c", _OPENER, plugin])
        self.addCleanup(program.__exit__)
        program.wait_for("ready")
        program.say("\n")
        return program

    def test_joins_nobody_without_definitions(self):
        result = probectl.probectl("attach", "--name", "x", "--join")
        self.assertEqual(result.code, 2, result.err)
        self.assertIn("it needs definitions", result.err)
        refused = probectl.probectl("attach", "--name", "x", "--join", "--follow", "-e", "p:x /x:1")
        self.assertEqual(refused.code, 2, refused.err)


if __name__ == "__main__":
    unittest.main()
