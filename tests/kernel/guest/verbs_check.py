"""Every verb that probes on programs have, on a kprobe, a kretprobe and, where there are such, a
function probe and a tracepoint probe; against tracefs and the program that runs their code."""

import json
import unittest

from kernel_side import ROOT, Case, Opens, instances, readme
from support import probectl
from support.process import Program
from support.wait import wait_until

LINES = {"open": "p:my/open do_sys_openat2 dfd=%di:s32 name=+u0(%si):string",
         "opened": "r:my/opened do_sys_openat2 fd=$retval:s32"}
if "t[:" in readme():
    LINES |= {"fopen": "f:my/fopen do_sys_openat2 filename:ustring",
              "fopened": "f:my/fopened do_sys_openat2%return fd=$retval:s32",
              "call": "t:my/call sys_enter id"}


class Verbs(Case):
    def file(self, event, name):
        path, = (path for instance in instances(self.pid)
                 for path in instance.glob(f"events/*/{event}/{name}"))
        return path.read_text()

    def watch(self, opens):
        """Until it has seen hits of all; it says nothing when it begins."""
        with Program([probectl.PROBECTL, "watch", "--format", "json", "--count", "100"],
                     env={**probectl.environment(), "PROBED_ADDRESS": self.daemon.address}) as watch:
            def ended():
                opens.open(20)
                return watch.process.poll() is not None
            wait_until(ended, 30, "a hundred hits")
            self.assertEqual(watch.finish(20), 0, watch.err)
            hits = [json.loads(line) for line in watch.out.splitlines()]
        self.assertEqual({hit["event"] for hit in hits if hit["type"] == "hit"}, set(LINES))
        self.assertEqual({hit["tid"] for hit in hits if hit["type"] == "hit"}, {opens.pid})

    def test_all(self):
        with Opens() as opens:
            only = f"common_pid == {opens.pid}"
            self.define(*LINES.values(), options=("--disabled",))
            listed = {probe["event"]: probe for probe in self.objects("list")}
            self.assertEqual(set(listed), set(LINES))
            for event, probe in listed.items():
                self.assertEqual((probe["mechanism"], probe["enabled"], probe["group"]),
                                 ("kernel", False, "my"))
                self.assertEqual(self.file(event, "enable"), "0\n")
                self.assertEqual(self.run_ok("format", f"my/{event}").out,
                                 self.file(event, "format"))
                self.run_ok("filter", f"my/{event}", only)
                self.assertEqual(self.run_ok("filter", event).out, only + "\n")
                self.assertEqual(self.file(event, "filter"), only + "\n")
                self.run_ok("trigger", event, f"traceoff:0 if {only}")
                self.assertEqual(self.run_ok("trigger", event).out,
                                 f"traceoff:count=0 if {only}\n")
                self.run_ok("trigger", event, "!traceoff")  # with it the probe is never off
            self.run_ok("enable", "my/")
            for event in LINES:
                self.assertRegex(self.file(event, "enable"), "^1")
            self.watch(opens)
            self.run_ok("disable", "my/")
            before = self.profile()
            opens.open(20)
            self.assertEqual(self.profile(), before)
            for event in LINES:
                self.assertGreaterEqual(before[event]["recorded"], 20)
                self.assertEqual(before[event]["lost"], 0)
                self.assertEqual(before[event]["hits"],
                                 before[event]["recorded"] + before[event]["filtered"]
                                 + before[event]["missed"])
            self.run_ok("delete", "my/")
        self.assert_nothing_left()
        self.assertEqual((ROOT / "dynamic_events").read_text(), "")


if __name__ == "__main__":
    unittest.main()
