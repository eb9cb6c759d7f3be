"""Definitions that a daemon starts with."""

import json
import tempfile
import unittest
from pathlib import Path

from attach_test import Counter
from support.daemon import Daemon
from support.wait import wait_until


class BootDefinitions(unittest.TestCase):
    def test_user_side_ones_are_made_in_every_target(self):
        with tempfile.TemporaryDirectory(prefix="probed-definitions-") as folder, \
                Counter() as counter:
            Path(folder, "some").write_text(f"# ours\np:boot/work {counter.path}:work n=%di:u64\n"
                                            "p:boot/sleep libc.so.6:clock_nanosleep\n"
                                            "p:boot/bad /no/such/file:0x10\n")
            parameter = f"r:boot/done,{counter.path}:work,v=$retval;p:boot/refused,{counter.path}:work,%zz"
            with Daemon(options=["--definitions", folder, "--probe-event", parameter]) as daemon:
                attached = daemon.run("attach", "--pid", str(counter.pid))
                self.assertEqual(attached.code, 0, attached.err)

                def hits():
                    profile = daemon.run("profile", "--json").out.splitlines()
                    return {p["event"]: p["hits"] for p in map(json.loads, profile)}
                wait_until(lambda: hits().get("work") and hits().get("done"), 20, "hits of both")
                self.assertEqual(set(hits()), {"work", "done", "sleep"})
                wait_until(lambda: "refused" in daemon.program.err + daemon.program.out, 5, "a warning")
                self.assertEqual(daemon.run("detach", "--pid", str(counter.pid)).code, 0)
            counter.assert_unharmed(self)


if __name__ == "__main__":
    unittest.main()
