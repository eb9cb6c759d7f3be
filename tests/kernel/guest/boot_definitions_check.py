"""Definitions that a daemon starts with: of kernel code, of events, and of programs, side by side."""

import json
import os
import signal
import tempfile
import unittest
from pathlib import Path

from kernel_side import Opens, definitions
from support.daemon import Daemon
from support.tracefs import ROOT
from support.wait import wait_until


class BootDefinitions(unittest.TestCase):
    def test_are_made_and_enabled(self):
        with tempfile.TemporaryDirectory() as folder, Opens() as opens:
            Path(folder, "kernel").write_text("r:boot/ret do_sys_openat2 fd=$retval:s32\n"
                                              "p:boot/bad no_such_function\n"
                                              "\n# a comment\n  p:boot/read vfs_read # another\n")
            Path(folder, "program").write_text(f"p:boot/one {opens.path}:open_one\n"
                                               "p:boot/worse vfs_read %zz\n")
            Path(folder, ".hidden").write_text("p:boot/hidden vfs_read\n")
            parameter = "p:boot/open,do_sys_openat2,name=+u0(%si):string;r:boot/wrote,vfs_write,$retval"
            with Daemon(options=["--definitions", folder, "--probe-event", parameter,
                                 "--probe-event", "sched:sched_process_exec"]) as daemon:
                attached = daemon.run("attach", "--pid", str(opens.pid))
                self.assertEqual(attached.code, 0, attached.err)
                opens.open(10)
                os.spawnl(os.P_WAIT, "/bin/busybox", "true")

                def hits():
                    profile = daemon.run("profile", "--json").out.splitlines()
                    return {p["event"]: p["hits"] for p in map(json.loads, profile)}
                self.assertLessEqual({"open", "ret", "read", "one", "sched_process_exec"},
                                     set(hits()))
                self.assertLessEqual(set(hits()),
                                     {"open", "ret", "read", "one", "sched_process_exec", "wrote"})
                wait_until(lambda: all(hits().values()), 20, f"hits of all {hits()}")
                self.assertEqual(hits()["one"], 10)
                log = daemon.program.err + daemon.program.out
                for refused in ("p:boot/bad no_such_function", "p:boot/worse vfs_read %zz"):
                    self.assertIn(f"definition '{refused}'", log)
                daemon.program.signal(signal.SIGTERM)
                self.assertEqual(daemon.program.finish(20), 0)
                self.assertEqual(definitions(daemon.program.pid), [])
            self.assertEqual(opens.program.finish(20), 0)
        self.assertEqual((ROOT / "dynamic_events").read_text(), "")
