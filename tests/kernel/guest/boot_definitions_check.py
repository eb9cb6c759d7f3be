"""Definitions of kernel code that a daemon starts with."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from support.daemon import Daemon
from support.tracefs import ROOT
from support.wait import wait_until


class BootDefinitions(unittest.TestCase):
    def test_are_made_and_enabled(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernel").write_text("r:boot/ret do_sys_openat2 fd=$retval:s32\n"
                                              "p:boot/bad no_such_function\n")
            parameter = "p:boot/open,do_sys_openat2,name=+u0(%si):string;p:boot/read,vfs_read"
            with Daemon(options=["--definitions", folder, "--probe-event", parameter]) as daemon:
                os.close(os.open("/", os.O_RDONLY))

                def hits():
                    profile = daemon.run("profile", "--json").out.splitlines()
                    return {p["event"]: p["hits"] for p in map(json.loads, profile)}
                self.assertEqual(set(hits()), {"open", "read", "ret"})
                wait_until(lambda: all(hits().values()), 20, "hits of all three")
                log = daemon.program.err + daemon.program.out
                self.assertIn("definition 'p:boot/bad no_such_function'", log)
        self.assertEqual((ROOT / "dynamic_events").read_text(), "")
