"""Kernels that were booted with lockdown=integrity or lockdown=confidentiality."""

import re
import unittest
from pathlib import Path

from kernel_side import ROOT, Opens
from support.daemon import Daemon
from tracefs_check import UserSide

MODE = re.search(r"\[(\w+)\]", Path("/sys/kernel/security/lockdown").read_text()).group(1)


class Lockdown(UserSide):
    @unittest.skipUnless(MODE == "integrity", f"lockdown is {MODE}")
    def test_integrity_allows_kprobes(self):
        with Daemon() as daemon, Opens() as opens:
            answer = daemon.run("define", "-e", "p:my/open do_sys_openat2 name=+u0(%si):string",
                                "--filter", f"common_pid == {opens.pid}", seconds=60)
            self.assertEqual(answer.code, 0, answer.err)
            opens.open(20)
            self.assertRegex(daemon.run("profile", "--json").out, '"recorded":20,')
        self.assertEqual((ROOT / "dynamic_events").read_text(), "")
        self.assert_probes_work()

    @unittest.skipUnless(MODE == "confidentiality", f"lockdown is {MODE}")
    def test_confidentiality_closes_tracefs(self):
        with Daemon(options=["--probe-event", "p:boot/open,do_sys_openat2"]) as daemon:
            for line in ("sched:sched_switch", "p:my/open do_sys_openat2"):
                words = self.refuse(daemon, "KERNEL_LOCKDOWN", "define", "-e", line)
                self.assertIn("confidentiality", words)
            self.assertIn("KERNEL_LOCKDOWN", daemon.program.err + daemon.program.out)
            # debugfs' read-only files stay open (fs/debugfs/file.c, debugfs_locked_down).
            answer = daemon.run("kernel", "list")
            self.assertEqual((answer.code, answer.out), (0, ""), answer.err)
            self.assert_probes_work(address=daemon.address)
            with Opens() as opens:
                attached = daemon.run("attach", "--pid", str(opens.pid))
                self.assertEqual(attached.code, 0, attached.err)
                mixed = daemon.run("define", "--pid", str(opens.pid), "-e",
                                   f"p:u/one {opens.path}:open_one", "-e", "p:my/o do_sys_openat2")
                self.assertNotEqual(mixed.code, 0)
                self.assertIn("KERNEL_LOCKDOWN", mixed.err)
                self.assertEqual(daemon.run("list").out, "")


if __name__ == "__main__":
    unittest.main()
