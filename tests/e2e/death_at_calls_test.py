"""The daemon is killed just before one of the system calls by which it changes a target, whichever
it is: the target lives on, and everything of ours leaves it."""

import os
import random
import tempfile
import unittest

from daemon_death_test import Hammer
from support import maps
from support.daemon import Daemon
from support.paths import DIES_AT, target
from support.process import Program, status, threads, tracer_of
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


class Gophers:
    """rounds.go, running: stacks that grow, a SIGTRAP handler, signals (SIGURG) all the time."""

    def __init__(self):
        path = target("rounds-go")
        self.program = Program([path])
        self.pid = self.program.pid
        self.program.wait_for("ready")
        self.definitions = [f"p:e/step {path}:main.step n=%ax", f"r:e/grow {path}:main.grow"]
        self._answers = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.__exit__()

    def rounds(self, case):
        self._answers += 1
        self.program.say("x")
        wait_until(lambda: self.program.out.count("wrong") == self._answers or
                   self.program.process.poll() is not None, 20, "it answers")
        case.assertIsNone(self.program.process.poll(), self.program.err[:400])
        words = self.program.out.splitlines()[-1].split()
        case.assertEqual(words[2:], ["wrong", "0"])
        return int(words[1])

    def assert_goes_on(self, case):
        before = self.rounds(case)
        wait_until(lambda: self.rounds(case) > before + 4, 20, "it goes on")

    def assert_clean(self, case):
        case.assertIsNone(self.program.process.poll(), self.program.err[:400])
        wait_until(lambda: tracer_of(self.pid) == 0, 10, "nobody traces it")
        case.assertEqual(maps.changed_text(self.pid), [])


class DeathAtCalls(unittest.TestCase):
    def run_daemon(self, program, folder, last_call):
        """A life with everything in it that changes a target. Returns the calls that it made."""
        definitions = "".join(line + "\n" for line in program.definitions)
        pid = program.pid
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

    def check(self, program, folder):
        wait_until(lambda: not has_guard(folder), 30, "the guard has done its work")
        program.assert_clean(self)
        program.assert_goes_on(self)

    def kill_everywhere(self, program, check):
        with tempfile.TemporaryDirectory() as folder:
            program.assert_goes_on(self)  # every thread has begun, and let signals in
            calls = self.run_daemon(program, folder, 0)
            self.check(program, folder)
            self.assertGreater(calls, 100)
            stride = calls / DEATHS
            for i in range(DEATHS):
                last = 1 + int(stride * (i + random.random()))
                with self.subTest(killed_before_call=last, of=calls):
                    self.run_daemon(program, folder, last)
                    self.check(program, folder)
                    check()

    def test_everywhere(self):
        with Hammer(THREADS, "gentle") as hammer:
            hammer.assert_goes_on(self)
            before = masks(hammer.pid)
            self.kill_everywhere(hammer, lambda: self.assertEqual(masks(hammer.pid), before))
            self.assertEqual(hammer.program.finish(10), 0)

    def test_everywhere_in_a_go_program(self):
        with Gophers() as gophers:
            self.kill_everywhere(gophers, lambda: None)
            self.assertEqual(gophers.program.finish(10), 0)


if __name__ == "__main__":
    unittest.main()
