"""Programs that live in other name spaces than the daemon, on stacked file systems, and under process
ids that others had before them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import maps, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, is_running_free, status
from support.wait import wait_until

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# What a container has that was given this one capability.
WITH_PTRACE_ONLY = [*AS_NOBODY, "--inh-caps=-all,+sys_ptrace", "--ambient-caps=-all,+sys_ptrace",
                    "--bounding-set=-all,+sys_ptrace", "--no-new-privs"]
LAST_PID = "/proc/sys/kernel/ns_last_pid"


def unshare(*options):
    return ["unshare", "--mount", "--propagation", "private", *options]


def descendant(pid, name):
    """The process below `pid` that runs `name`."""
    def find(parent):
        if os.path.basename(os.readlink(f"/proc/{parent}/exe")) == name:
            return parent
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return next((found for child in children if (found := find(int(child)))), None)
    return wait_until(lambda: find(pid), 10, f"{name} runs")


@unittest.skipUnless(os.geteuid() == 0, "needs root: makes name spaces and mounts")
class Namespaces(unittest.TestCase):
    THREADS, CALLS = 4, 500

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="probed-spaces-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)

    def start(self, before, script, *words):
        program = Program([*before, "sh", "-ec", script, "sh", *words])
        self.addCleanup(program.__exit__)
        program.wait_for("ready")
        return program

    def probe(self, program, pid, path, calls, before=()):
        """Attaches to `pid`, lets it run to its end and compares with what it has counted."""
        definitions = ["-e", f"p:e/in {path}:step", "-e", f"r:e/out {path}:step"]
        with Program([*before, probectl.PROBECTL, "attach", "--pid", str(pid), "--format", "trace",
                      *definitions], env=probectl.environment()) as session:
            session.wait_for("attached to", 20, stream="err")
            program.say("\n")
            self.assertEqual(program.finish(20, close_input=False), 0, program.err)
            self.assertIn(f"calls {calls} sum ok", program.out)
            self.assertEqual(session.finish(20), 0, session.err)
            self.assertEqual(trace.counts(trace.records(session.out)),
                             {"in": calls, "out": calls}, session.err)

    def test_overlay(self):
        lower, upper, work, merged = (self.folder / name for name in
                                      ("lower", "upper", "work", "merged"))
        for folder in (lower, upper, work, merged):
            folder.mkdir()
        shutil.copy(target("threads"), lower / "victim")
        mount = (f"mount -t tmpfs none {work}; mkdir {work}/upper {work}/work; mount -t overlay "
                 f"none -o lowerdir={lower},upperdir={work}/upper,workdir={work}/work {merged}; ")
        for copy_up in (False, True):
            with self.subTest(copy_up=copy_up):
                program = self.start(unshare(), mount + 'exec "$@"', merged / "victim",
                                     str(self.THREADS), str(self.CALLS), "wait")
                if copy_up:  # the path now leads to another layer than the running code
                    os.chmod(f"/proc/{program.pid}/root{merged}/victim", 0o700)
                self.probe(program, program.pid, merged / "victim", self.THREADS * self.CALLS)

    def test_other_mount_and_process_id_namespaces(self):
        path = self.folder / "place" / "victim"
        path.parent.mkdir()
        path.write_text("outside this is no program\n")
        script = (f"mount -t tmpfs none {path.parent}; cp {target('threads')} {path}; "
                  'mount -t proc proc /proc; exec "$@"')
        program = self.start(unshare("--pid", "--fork"), script, path, str(self.THREADS),
                             str(self.CALLS), "wait")
        pid = descendant(program.pid, "victim")
        self.assertEqual(status(pid, "NSpid").split()[-1], "1")
        self.probe(program, pid, path, self.THREADS * self.CALLS)

    def test_user_namespace_of_a_user(self):
        """Neither the daemon nor the program is privileged; both are the same user's."""
        path = self.folder / "victim"
        shutil.copy(target("threads"), path)
        path.chmod(0o755)
        program = self.start([*AS_NOBODY, "unshare", "--user", "--map-root-user", "--mount"],
                             'exec "$@"', path, str(self.THREADS), str(self.CALLS), "wait")
        self.assertEqual(status(program.pid, "Uid").split()[0], str(NOBODY))
        self.assertNotEqual(os.readlink(f"/proc/{program.pid}/ns/user"),
                            os.readlink("/proc/self/ns/user"))
        self.probe(program, program.pid, path, self.THREADS * self.CALLS, AS_NOBODY)

    def test_one_capability(self):
        """Other users' processes, by a daemon that may trace and nothing else."""
        path = self.folder / "victim"
        shutil.copy(target("threads"), path)
        path.chmod(0o755)
        for before in ([], ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]):
            with self.subTest(before=before):
                program = self.start([*before, "env"], 'exec "$@"', path, str(self.THREADS),
                                     str(self.CALLS), "wait")
                self.probe(program, program.pid, path, self.THREADS * self.CALLS, WITH_PTRACE_ONLY)

    def test_user_namespace_of_root(self):
        program = self.start(["unshare", "--user", "--map-root-user", "--mount"], 'exec "$@"',
                             target("threads"), str(self.THREADS), str(self.CALLS), "wait")
        self.probe(program, program.pid, target("threads"), self.THREADS * self.CALLS)

    def test_files_of_one_name_and_number(self):
        """Two file systems have a plugin each; the one that is defined in is not the one loaded."""
        here, there = self.folder / "here", self.folder / "there"
        for folder in (here, there):
            folder.mkdir()
        mounts = "".join(f"mount -t tmpfs none {folder}; cp {target('plugin')} {folder}/plugin; "
                         for folder in (here, there))
        program = self.start(unshare(), mounts + 'exec "$@"', target("loader"), there / "plugin",
                             "50", "wait")
        root = f"/proc/{program.pid}/root"
        numbers = [os.stat(f"{root}{folder}/plugin").st_ino for folder in (here, there)]
        self.assertEqual(numbers[0], numbers[1], "a file system of this kernel numbers otherwise")
        with Program([probectl.PROBECTL, "attach", "--pid", str(program.pid), "--format", "trace",
                      "-e", f"p:e/here {here}/plugin:plugin_work",
                      "-e", f"p:e/there {there}/plugin:plugin_work"],
                     env=probectl.environment()) as session:
            session.wait_for("attached to", 20, stream="err")
            program.say("\n")
            self.assertEqual(program.finish(20, close_input=False), 0, program.err)
            self.assertEqual(session.finish(20), 0, session.err)
            self.assertEqual(trace.counts(trace.records(session.out)), {"there": 100})


@unittest.skipUnless(os.geteuid() == 0, "needs root: makes a process id name space")
class ReusedIds(unittest.TestCase):
    def test_process_ids_that_are_used_again(self):
        """In a name space of its own, where nobody else takes the number."""
        result = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "unittest",
             "namespaces_test.Inside"], env={**os.environ, "PROBED_INSIDE": "1"},
            capture_output=True, text=True, timeout=150, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("skipped", result.stderr)


class NumberTaken(Exception):
    """Somebody who stays has the process id."""


@unittest.skipUnless(os.environ.get("PROBED_INSIDE"), "runs within ReusedIds")
class Inside(unittest.TestCase):
    ROUNDS = 10
    NUMBERS = range(20000, 20000 + 100 * 5 * ROUNDS, 100)

    def start(self, number):
        """counter.c as process `number`."""
        for _ in range(20):
            Path(LAST_PID).write_text(str(number - 1))
            program = Program([target("counter")])
            self.addCleanup(program.__exit__)
            if program.pid == number:
                program.wait_for("ready")
                return program
            program.kill()
        raise NumberTaken(number)

    def many(self, one_round):
        """Enough rounds, each with a number of its own: a thread of a daemon may be given it first."""
        done = 0
        for number in self.NUMBERS:
            try:
                one_round(number)
                done += 1
            except NumberTaken:
                pass
            if done == self.ROUNDS:
                return
        self.fail(f"only {done} rounds had the number that they needed")

    def end_well(self, program):
        wait_until(lambda: is_running_free(program.pid), 20, "it runs free")
        self.assertEqual(maps.changed_text(program.pid), [])
        self.assertEqual(program.finish(20), 0)
        self.assertRegex(program.out, r"calls \d+ wrong 0\n$")

    def attach(self, number, daemon):
        path = target("counter")
        return probectl.Attached(number, [f"p:e/in {path}:work", f"r:e/out {path}:work"],
                                 address=daemon.address)

    def test_a_successor_is_another_target(self):
        with Daemon() as daemon:
            def one_round(number):
                first = self.start(number)
                with self.attach(number, daemon) as session:
                    session.wait_for_records(10)
                    first.kill()
                    second = self.start(number)
                    session.finish(20)
                self.assertTrue(is_running_free(number))
                self.assertEqual(maps.changed_text(number), [])
                with self.attach(number, daemon) as session:
                    session.wait_for_records(10)
                    self.assertEqual(session.detach(), 0, session.program.err)
                self.end_well(second)
            self.many(one_round)

    def test_a_successor_is_not_cleaned_up_in(self):
        """The daemon dies with a target; what it left is not undone in whoever has the number now."""
        def one_round(number):
            with Daemon(patient=True) as daemon:
                first = self.start(number)
                with self.attach(number, daemon) as session:
                    session.wait_for_records(10)
                    os.kill(daemon.program.pid, signal.SIGKILL)
                    first.kill()
                    second = self.start(number)
                    session.program.kill()
            self.end_well(second)
        self.many(one_round)


if __name__ == "__main__":
    unittest.main()
