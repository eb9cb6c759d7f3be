"""Which processes an attach takes: by user, control group, container, by what they map already; and
their children."""

import os
import re
import secrets
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from support import elf, maps, probectl, trace
from support.paths import target
from support.process import Program, tracer_of

SOMEBODY = 4711


def control_groups():
    """Where a hierarchy of control groups (version 2) is mounted, or None."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2" and "rw" in options.split(",") and os.access(where, os.W_OK):
            return Path(where)
    return None


class Selection(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)
        self.path = shutil.copy(target("counter"), self.folder / "chosen")
        self.neighbour = self.start(self.path)

    def start(self, *words):
        program = Program([*words])
        self.addCleanup(program.__exit__)
        program.wait_for("ready")
        return program

    def assert_chosen(self, program, *selection, place=None):
        """Those options choose the program, and nobody else who runs the same file."""
        done = probectl.probectl("attach", *selection, "-e", f"p:e/w {place or f'{self.path}:work'}",
                                 "--count", "3", seconds=40)
        self.assertEqual(done.code, 0, done.err)
        attached = re.search(r"attached to (.*)", done.err)[1]
        self.assertEqual(re.findall(r"(\d+) \(", attached), [str(program.pid)])
        self.assertEqual({record.pid for record in trace.records(done.out)}, {program.pid})
        self.assertEqual(tracer_of(self.neighbour.pid), 0)
        self.assertEqual(maps.changed_text(self.neighbour.pid), [])
        self.assertEqual(program.finish(20), 0)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be somebody else")
    def test_by_user(self):
        chosen = self.start("setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}",
                            "--clear-groups", self.path)
        self.assert_chosen(chosen, "--user", str(SOMEBODY))

    @unittest.skipUnless(os.geteuid() == 0 and control_groups(), "needs control groups of its own")
    def test_by_control_group_and_container(self):
        container = secrets.token_hex(32)
        above = control_groups() / f"probed-test-{os.getpid()}"
        group = above / f"docker-{container}.scope"
        group.mkdir(parents=True)
        self.addCleanup(above.rmdir)
        self.addCleanup(group.rmdir)
        below = str(group).removeprefix(str(control_groups()))
        for selection in (("--cgroup", below), ("--cgroup", os.path.dirname(below)),
                          ("--container", container), ("--container", container[:12])):
            with self.subTest(selection):
                chosen = self.start(self.path)
                (group / "cgroup.procs").write_text(str(chosen.pid))
                self.assert_chosen(chosen, *selection)

    def test_by_what_it_maps_already(self):
        plugin = shutil.copy(target("plugin"), self.folder / "plugin.so")
        script = ("import ctypes, select, sys\nwork = ctypes.CDLL(sys.argv[1]).plugin_work\n"
                  "print('ready', flush=True)\n"
                  "while not select.select([sys.stdin], [], [], 0.001)[0]: work(1)\n")
        chosen = self.start(sys.executable, "-c", script, plugin)
        self.assert_chosen(chosen, "--maps", plugin, "--duration", "20", place=f"{plugin}:plugin_work")


class Followed(unittest.TestCase):
    def test_children_are_followed_if_told(self):
        path, children, calls = target("forker"), 4, 25
        for options, processes in ((["--follow"], children + 1), ([], 1)):
            with self.subTest(options), Program([path, str(children), str(calls), "wait"]) as program:
                program.wait_for("ready")
                site = maps.load_base(program.pid, path) + elf.load(str(path)).symbols["work"].address
                with probectl.Attached(program.pid, [f"p:e/w {path}:work", f"r:e/x {path}:work"],
                                       *options, armed=site) as session:
                    program.say("\n")
                    self.assertEqual(program.finish(30, close_input=False), 0)
                    self.assertEqual(session.finish(30), 0, session.program.err)
                    records = session.records
                self.assertTrue(program.out.endswith(f"total {calls * (children + 2)}\n"), program.out)
                self.assertEqual(len({record.pid for record in records}), processes)
                expected = calls * (processes + 1)
                self.assertEqual(trace.counts(records), {"w": expected, "x": expected})


if __name__ == "__main__":
    unittest.main()
