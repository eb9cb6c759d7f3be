"""Tracefs that cannot be used, and callers who may not: named errors, and probes on programs go on
as if nothing were."""

import os
import stat
import subprocess
import unittest
from pathlib import Path

from attach_test import Counter
from support import probectl
from support.daemon import Daemon
from support.paths import target

NOBODY = 65534
PERMISSION = 4
SWITCH = ("define", "-e", "sched:sched_switch")


def mount(*words):
    subprocess.run(["mount", *words], check=True, timeout=30, capture_output=True)


def umount(*paths):
    for path in paths:
        subprocess.run(["umount", path], check=True, timeout=30, capture_output=True)


class UserSide(unittest.TestCase):
    def assert_probes_work(self, *options, address=None):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work n=%di:u64"], *options,
                                   armed=counter.site, address=address) as session:
                session.wait_for_records(20)
                session.detach()
            counter.assert_unharmed(self)

    def refuse(self, daemon, reason, *words):
        answer = daemon.run(*(words or SWITCH), seconds=60)
        self.assertNotEqual(answer.code, 0, answer.out)
        self.assertIn(reason, answer.err)
        return answer.err


class Tracefs(UserSide):
    def test_read_only(self):
        mount("-o", "remount,ro", "/sys/kernel/tracing")
        try:
            with Daemon() as daemon:
                hint = self.refuse(daemon, "TRACEFS_READ_ONLY")
                self.assertIn("remount,rw", hint)
                self.refuse(daemon, "TRACEFS_READ_ONLY", "define", "-e", "p:my/a vfs_read")
                self.assert_probes_work(address=daemon.address)
                mount("-o", "remount,rw", "/sys/kernel/tracing")
                self.assertEqual(daemon.run(*SWITCH).code, 0)  # it is looked for anew
        finally:
            mount("-o", "remount,rw", "/sys/kernel/tracing")

    def test_mounted_nowhere_and_elsewhere(self):
        umount("/sys/kernel/tracing")
        try:
            with Daemon() as daemon:  # debugfs shows it under "tracing", as of old
                answer = daemon.run("define", "-e", "p:my/a vfs_read", seconds=60)
                self.assertEqual(answer.code, 0, answer.err)
                self.assertEqual(len(list(Path("/sys/kernel/debug/tracing/instances").iterdir())),
                                 1)
                self.assertEqual(daemon.run("delete", "my/a").code, 0)
                umount("/sys/kernel/debug/tracing", "/sys/kernel/debug")
                try:
                    self.assertIn("mount -t tracefs", self.refuse(daemon, "TRACEFS_NOT_MOUNTED"))
                    self.refuse(daemon, "NO_KPROBES_DIRECTORY", "kernel", "list")
                    self.assert_probes_work(address=daemon.address)
                finally:
                    mount("-t", "debugfs", "debug", "/sys/kernel/debug")
        finally:
            mount("-t", "tracefs", "nodev", "/sys/kernel/tracing")


class Unprivileged(UserSide):
    @staticmethod
    def become_nobody():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    def as_nobody(self, *words, address="private"):
        return subprocess.run([probectl.PROBECTL, *words], preexec_fn=self.become_nobody,
                              env={**probectl.environment(), "PROBED_ADDRESS": address},
                              capture_output=True, text=True, timeout=120, check=False)

    def test_own_daemon(self):
        for words in (["-e", "sched:sched_switch"], ["-e", "p:my/a vfs_read"]):
            answer = self.as_nobody("trace", *words, "--duration", "1")
            self.assertEqual(answer.returncode, PERMISSION, answer.stderr)
            self.assertIn("KERNEL_PROBES_NEED_ADMIN", answer.stderr)
        self.assert_own_program("private")

    def test_somebody_elses_daemon(self):
        """What the daemon may, its caller need not."""
        with Daemon() as daemon:
            path = Path(daemon.address.removeprefix("unix://"))
            path.parent.chmod(0o755)
            path.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
            for words in (SWITCH, ("define", "-e", "p:my/a vfs_read"), ("kernel", "list"),
                          ("symbols", "--kernel", "vfs_*"), ("explain", "--kernel", "vfs_read")):
                answer = self.as_nobody(*words, address=daemon.address)
                self.assertEqual(answer.returncode, PERMISSION, f"{words}: {answer.stderr}")
            self.assertEqual(daemon.run("list").out, "")
            self.assert_own_program(daemon.address)

    def assert_own_program(self, address):
        program = subprocess.Popen([target("counter")], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, preexec_fn=self.become_nobody)
        try:
            self.assertEqual(program.stdout.readline(), b"ready\n")
            answer = self.as_nobody("attach", "--pid", str(program.pid), "-e",
                                    f"p:e/w {target('counter')}:work", "--count", "5",
                                    address=address)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertEqual(answer.stdout.count(": w: "), 5)
            out, _ = program.communicate(timeout=30)
            self.assertRegex(out.decode(), r"wrong 0\n$")
            self.assertEqual(program.returncode, 0)
        finally:
            program.kill()
            program.wait(10)


if __name__ == "__main__":
    unittest.main()
