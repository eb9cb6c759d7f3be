"""Filters, triggers and refusals of kprobes, through probectl."""

import re
import unittest

from kernel_side import Case, Opens, instances

OPEN = "p:my/open do_sys_openat2 dfd=%di:s32 name=+u0(%si):string"


class Filter(Case):
    def kernels(self, event, file):
        path, = (path for instance in instances(self.pid)
                 for path in instance.glob(f"events/*/{event}/{file}"))
        return path.read_text()

    def test_filter(self):
        with Opens() as opens:
            session = self.start_tracing([OPEN], "--filter",
                                         f'name == "{opens.missing}" && dfd < 0')
            opens.open(100)
            self.end_tracing(session)
            self.assertEqual([hit["args"]["name"] for hit in session.objects], [opens.missing] * 50)

    def test_refused_filter_leaves_the_old_one(self):
        self.define(OPEN)
        self.run_ok("filter", "my/open", "dfd == -100")
        refused = self.refused("filter", "my/open", "dfd == -100 && nme == 1")
        self.assertRegex(refused.err, r"Field not found\n +Command: dfd == -100 && nme == 1\n"
                                      r" {28,31}\^\n(  .*\n)*  why: FIELD_NOT_FOUND \(errno=22\)\n")
        self.assertEqual(self.run_ok("filter", "my/open").out, "dfd == -100\n")
        self.assertEqual(self.kernels("open", "filter"), "dfd == -100\n")

    def test_traceoff_and_enable_event(self):
        with Opens() as opens:
            self.define(OPEN, "r:my/opened do_sys_openat2 fd=$retval:s32")
            self.run_ok("disable", "my/opened")
            condition = f"if common_pid == {opens.pid}"
            self.run_ok("trigger", "my/open", f"enable_event:my:opened {condition}")
            self.assertEqual(self.run_ok("trigger", "my/open").out,
                             f"enable_event:my:opened:unlimited {condition}\n")
            opens.open(10)
            self.assertEqual(self.kernels("opened", "enable").strip(), "1*")
            self.assertGreaterEqual(self.profile()["opened"]["recorded"], 10)
            self.run_ok("trigger", "my/open", "!enable_event:my:opened")
            self.run_ok("trigger", "my/open", f"traceoff:1 {condition}")
            refused = self.refused("trigger", "my/open", "traceoff if nme == 1")
            # Older kernels have no word of it in their logs.
            self.assertRegex(refused.err, "without a word|Field not found")
            self.assertIn("Command: traceoff if nme == 1", refused.err)
            self.refused("trigger", "my/open", "nothing")
            instance, = instances(self.pid)
            self.assertEqual((instance / "tracing_on").read_text(), "1\n")
            opens.open(10)
            self.assertEqual(self.kernels("open", "trigger"), f"traceoff:count=0 {condition}\n")
            self.assertEqual((instance / "tracing_on").read_text(), "0\n")

    def test_histogram(self):
        with Opens() as opens:
            self.define(OPEN, options=("--disabled",))
            self.run_ok("trigger", "my/open",
                        f"hist:keys=name:sort=name if common_pid == {opens.pid}")
            self.assertRegex(self.run_ok("trigger", "my/open").out,
                             r"^hist:keys=name:vals=hitcount:sort=name:size=2048 "
                             rf"if common_pid == {opens.pid} \[active\]\n$")
            opens.open(101)
            shown = self.run_ok("trigger", "my/open", "--hist").out
            self.assertEqual(shown.rstrip(), self.kernels("open", "hist").rstrip())
            self.assertEqual({name: int(count) for name, count in re.findall(
                r"\{ name: (\S+)\s*\} hitcount: +(\d+)", shown)},
                {opens.there: 51, opens.missing: 50})
            self.assertIn("Hits: 101", shown)
            refused = self.refused("trigger", "my/open", "hist:keys=nme")
            self.assertIn("Couldn't find field", refused.err)
            self.run_ok("trigger", "my/open",
                        f"!hist:keys=name:sort=name if common_pid == {opens.pid}")
            self.assertEqual(self.run_ok("trigger", "my/open").out, "")


class Refusals(Case):
    """The words, the caret and the errno, as they are shown. All of them: refusals_test.cc."""

    def test_are_shown(self):
        for marked, message, reason in [
                ("p^100:my/b vfs_read", None, "BAD_MAXACT_TYPE"),
                ("r:my/b ^vfs_read+10", "Retprobe address must be an function entry", "BAD_RETPROBE"),
                ("p:my/b vfs_read a=%di ^b=", None, None),
                ("p ^no_such_func", "Invalid probed address or symbol", "BAD_PROBE_ADDR"),
                ("p:my/b vfs_read a=%di b=^%zz", "Invalid register name", "BAD_REG_NAME")]:
            line, column = marked.replace("^", ""), marked.index("^")
            with self.subTest(line):
                refused = self.daemon.run("define", "-e", "sched:sched_switch", "-e", line,
                                          seconds=60)
                # What is not there is not found, or since Linux 6.2 invalid.
                self.assertIn(refused.code, (5, 2) if "no_such" in line else (2,))
                if reason:
                    self.assertIn(reason, refused.err)
                if message:
                    self.assertIn(f"definition 2: {message}\n", refused.err)
                    self.assertIn(f"  why: {reason} (errno=", refused.err)
                    command, caret = re.search(r"( +Command: .*)\n( +)\^", refused.err).groups()
                    self.assertEqual(len(caret), command.index(line) + column)
                self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
