"""Yama, scope by scope: who may trace whom, and what is said to who may not. The last one stays until
the machine ends, so nothing that traces can come after this."""

import subprocess
import unittest
from pathlib import Path

from support import probectl
from support.paths import target

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
PERMISSION = 4


class Yama(unittest.TestCase):
    def setUp(self):
        self.path = target("counter")
        self.counter = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **NOBODY)
        self.addCleanup(self.end)
        self.assertEqual(self.counter.stdout.readline(), "ready\n")

    def end(self):
        out, _ = self.counter.communicate(timeout=100)
        self.assertEqual(self.counter.returncode, 0)
        self.assertRegex(out, r"calls \d+ wrong 0\n$")

    def probectl(self, *words, **who):
        return subprocess.run([probectl.PROBECTL, *words], env=probectl.environment(), text=True,
                              capture_output=True, timeout=100, check=False, cwd="/tmp",
                              stdin=subprocess.DEVNULL, **who)

    def attach(self, **who):
        return self.probectl("attach", "--pid", str(self.counter.pid), "-e",
                             f"p:e/w {self.path}:work", "--count", "3", **who)

    def assert_refused(self, answer, scope):
        self.assertEqual(answer.returncode, PERMISSION, answer.stderr)
        self.assertIn("YAMA_SCOPE", answer.stderr)
        self.assertRegex(answer.stderr, rf"ptrace_scope(=| is ){scope}")

    def test_scopes_of_an_attach(self):
        for scope in range(4):
            with self.subTest(scope):
                SCOPE.write_text(str(scope))
                as_nobody, as_root = self.attach(**NOBODY), self.attach()
                if scope == 0:
                    self.assertEqual(as_nobody.returncode, 0, as_nobody.stderr)
                else:
                    self.assert_refused(as_nobody, scope)
                if scope < 3:
                    self.assertEqual(as_root.returncode, 0, as_root.stderr)
                else:
                    self.assert_refused(as_root, scope)
                    self.assertIn("reboot", as_root.stderr)

    def test_a_program_that_is_run(self):
        """What has been started for it may be traced in scope 1, too."""
        for scope in (0, 1):
            with self.subTest(scope):
                SCOPE.write_text(str(scope))
                path = target("values", "gcc-O1-pie-nocf")
                done = self.probectl("run", "-e", f"p:e/v {path}:probe_me", "--", path, "1", **NOBODY)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(" v: (0x", done.stdout)


if __name__ == "__main__":
    unittest.main()
