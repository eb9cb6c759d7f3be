"""Probes in the kernel's own code, against what the program that runs it says and against the
kernel's own trace of the same definitions."""

import json
import os
import threading
import time
import unittest

from kernel_side import NO_SUCH_FILE, Case, Opens, kernel_counts, only, readme
from support.tracefs import Tracefs
from support.wait import wait_until

OPEN = "p:my/open do_sys_openat2 filename=+u0(%si):string"
OPENED = "r:my/opened do_sys_openat2 fd=$retval:s32"


class Open(Case):
    def expected(self, opens, times, fd):
        for i in range(times):
            yield "open", {"filename": opens.missing if i % 2 else opens.there}
            yield "opened", {"fd": NO_SUCH_FILE if i % 2 else fd}

    def test_entry_and_return(self):
        with Opens() as opens:
            session = self.start_tracing([OPEN, OPENED], *only(opens.pid))
            fd = opens.open(1000)
            self.end_tracing(session)
            hits = [hit for hit in session.objects if hit["type"] == "hit"]
            self.assert_same([(hit["event"], hit["args"]) for hit in hits],
                             list(self.expected(opens, 1000, fd)))
            self.assertEqual({(hit["pid"], hit["tid"], hit["group"]) for hit in hits},
                             {(opens.pid, opens.pid, "my")})
            times = [hit["monotonic_ns"] for hit in hits]
            self.assertEqual(times, sorted(times))
        self.assert_nothing_left()

    def test_counts_are_the_kernels(self):
        with Opens() as opens:
            self.define(OPEN, OPENED)
            opens.open(500)
            self.run_ok("disable", "my/")  # so that neither goes on counting
            kernel, ours = kernel_counts(self.pid), self.profile()
            self.assertGreaterEqual(kernel["open"][0], 500)
            for event, (hits, misses) in kernel.items():
                self.assertEqual((ours[event]["hits"], ours[event]["missed"], ours[event]["lost"]),
                                 (hits + misses, misses, 0))
                self.assertEqual(ours[event]["recorded"], hits)
            self.run_ok("enable", "my/")
            self.run_ok("filter", "my/open", f"common_pid == {opens.pid}")
            before = self.profile()["open"]
            opens.open(100)
            self.run_ok("disable", "my/")
            after = self.profile()["open"]
            self.assertEqual(after["recorded"] - before["recorded"], 100)
            self.assertEqual(after["hits"], kernel_counts(self.pid)["open"][0])
            self.assertEqual(after["hits"], after["recorded"] + after["filtered"])


class Maxactive(Case):
    def test_misses(self):
        """Of six calls at once that last a while, one has the one instance that there is."""
        probe, = self.define("r1:my/sleep hrtimer_nanosleep")
        self.assertRegex(probe["definition"], "^r1:my/sleep ")
        threads = [threading.Thread(target=time.sleep, args=(2,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: self.profile()["sleep"]["missed"] >= 5, 20, "misses")
        self.run_ok("disable", "my/sleep")
        ours = self.profile()["sleep"]
        hits, misses = kernel_counts(self.pid)["sleep"]
        self.assertEqual((ours["missed"], ours["hits"]), (misses, hits + misses))
        self.assertGreaterEqual(hits, 1)

    def test_option(self):
        probe, = self.define(OPENED, options=("--max-active", "7"))
        self.assertRegex(probe["definition"], "^r7:my/opened ")


class Text(Case):
    """Every form of argument, shown as the kernel's own trace shows it."""

    ENTRY = ["%di:s32", "%si", "%ip", "%ip:symbol", "$stack0:symbol", "$stack", "$stack3:x32",
             "$comm", "@linux_banner:string", "@linux_banner+6:u8[5]", "\\3", "\\-5:s16",
             "+u0(%si):string", "+u0(%si):ustring", "+0(%si):ustring", "+u0(%si):u64",
             "$arg1:s32", "+0($arg3):x64", "+0(%dx):b4@4/16", "+0(%dx):u16[3]", "+0(%dx):x8[2]",
             "+u0(%bx):string", "+0(+8(%sp)):u32", "\\\"text\"", "%flags:x16", "%orig_ax:s64",
             "+u0(%si):b3@2/8", "%dx:s8"]
    RETURN = ["$retval", "$retval:s32", "$retval:x16", "$comm", "%ax:u64", "%sp", "$stack1:symbol"]

    def arguments(self, forms):
        if "symstr" in readme():
            forms = [*forms, "%ip:symstr", "$stack0:symstr"]
        return " ".join(f"a{i}={form}" for i, form in enumerate(forms))

    def test_arguments(self):
        entry = f"do_sys_openat2 {self.arguments(self.ENTRY)}"
        leave = f"do_sys_openat2 {self.arguments(self.RETURN)}"
        with Opens() as opens:
            ours, theirs = self.both_texts([f"p:my/in {entry}", f"r:my/out {leave}"], opens, 20)
            self.assertEqual(len(ours), 40)
            self.assert_same([(r.event, r.comm, r.pid, r.text) for r in ours],
                             [(r.event, r.comm, r.pid, r.text) for r in theirs])
            self.assertRegex(ours[0].text, r"^\(do_sys_openat2\+0x[04]/0x[0-9a-f]+\) a0=")
            self.assertRegex(ours[1].text, r"^\(\w+\+0x\w+/0x\w+ <- do_sys_openat2\) a0=")
        self.assert_nothing_left()

    def test_hundred_and_twenty_eight_arguments(self):
        line = "p:my/many do_sys_openat2 " + " ".join(f"a{i}=\\{i}" for i in range(128))
        with Opens() as opens:
            session = self.start_tracing([line], *only(opens.pid))
            opens.open(1)
            self.end_tracing(session)
            hit, = session.objects
            self.assertEqual(hit["args"], {f"a{i}": i for i in range(128)})
        # One more: refused, or left out, as Linux 6.1 does without a word.
        more = self.daemon.run("define", "-e", line + " a128=\\128", "--disabled", "--json")
        if more.code == 0:
            self.assertNotIn("a128", json.loads(more.out)["definition"])
        else:
            self.assertIn("too many arguments", more.err)
            self.assertIn("errno=7", more.err)


class OtherKinds(Case):
    """t:, f:, e: and s: -- what this kernel has goes through, and what it lacks has a name."""

    LACKING = [("t:my/t sched_switch", "NO_TRACEPOINT_EVENTS", "tracepoint"),
               ("f:my/f vfs_read", "NO_FPROBE_EVENTS", "function probe"),
               ("p:my/b do_sys_openat2 $arg*", "BAD_VAR", "BTF"),
               ("p:my/b do_sys_openat2 filename", "BAD_FETCH_ARG", "BTF")]

    @unittest.skipIf("t[:" in readme(), "this kernel lacks none of them: newer_check.py")
    def test_what_this_kernel_lacks(self):
        for word in ("f[:", "$arg*"):
            self.assertNotIn(word, readme())
        for line, reason, word in self.LACKING:
            refused = self.daemon.run("define", "-e", line)
            self.assertNotEqual(refused.code, 0, line)
            self.assertIn(reason, refused.err)
            self.assertIn(word, refused.err)
        self.assert_nothing_left()

    def test_events_by_name(self):
        with Opens() as opens:
            session = self.start_tracing(["syscalls:sys_*_openat", "sched:sched_process_exec"])
            opens.open(50)
            os.spawnl(os.P_WAIT, "/bin/busybox", "true")
            self.end_tracing(session)
            mine = [hit for hit in session.objects if hit.get("tid") == opens.pid]
            self.assertEqual([hit["event"] for hit in mine],
                             ["sys_enter_openat", "sys_exit_openat"] * 50)
            self.assertIn("sched_process_exec", {hit["event"] for hit in session.objects})

    def test_event_probe(self):
        line = "syscalls.sys_enter_openat name=+u0($filename):ustring flags=$flags:x32 c=$comm"
        with Tracefs(definitions="dynamic_events") as kernel, Opens() as opens:
            session = self.start_tracing([f"e:my/e {line}"], *only(opens.pid),
                                         output_format="trace")
            kernel.define(f"e:{kernel.group}/e {line}")
            kernel.filter("e", f"common_pid == {opens.pid}")
            kernel.enable("e")
            opens.open(20)
            kernel.disable_all()
            self.end_tracing(session)
            theirs = [line.split(": ", 1)[1] for line in kernel.text().splitlines()
                      if ": e: " in line]
            ours = [line.split(": ", 1)[1] for line in session.text.splitlines() if ": e: " in line]
            self.assertEqual(len(ours), 20)
            self.assertEqual(ours, theirs)
        self.assert_nothing_left()

    def test_synthetic_event(self):
        """The time from entry to return, made by the kernel's hist triggers."""
        with Opens() as opens:
            names = ["s:took u64 lat; s32 fd", OPEN, OPENED]
            self.define(*names, options=("--disabled",))
            self.run_ok("enable", "synthetic/took")
            self.run_ok("trigger", "my/open", "hist:keys=common_pid:t0=common_timestamp "
                                              f"if common_pid == {opens.pid}")
            action = "hist:keys=common_pid:lat=common_timestamp-$t0:f=fd:" \
                     "onmatch(my.open).took($lat,$f)"
            self.run_ok("trigger", "my/opened", f"{action} if common_pid == {opens.pid}")
            opens.open(50)
            self.run_ok("disable", "took")
            shown = self.run_ok("trigger", "my/opened").out
            self.assertIn("onmatch(my.open)", shown)
            self.assertIn("took($lat,$f)", shown)
            self.assertNotIn("probed_", shown)
            self.assertEqual(self.profile()["took"]["recorded"], 50)
            # Each holds the others: in whatever order they go.
            self.run_ok("delete", "took", "my/")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
