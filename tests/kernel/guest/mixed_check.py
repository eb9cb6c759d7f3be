"""Definitions of user and of kernel code in one request and one stream."""

import unittest

from kernel_side import NO_SUCH_FILE, Case, Opens
from support import maps, probectl


def lines(opens):
    return [f"p:mix/in {opens.path}:open_one path=+0(%di):string",
            "p:mix/kernel_in do_sys_openat2 path=+u0(%si):string",
            "r:mix/kernel_out do_sys_openat2 fd=$retval:s32",
            f"r:mix/out {opens.path}:open_one fd=$retval:s32"]


class Mixed(Case):
    TIMES = 1000

    def test_each_thread_is_in_order(self):
        """By turns through both: the program's entry, the kernel's, and back."""
        with Opens() as opens:
            with probectl.Attached(opens.pid, lines(opens), "--filter", f"common_pid == {opens.pid}",
                                   address=self.daemon.address, output_format="json") as session:
                fd = opens.open(self.TIMES)
                self.assertEqual(session.detach(), 0, session.program.err)
                hits = [hit for hit in session.objects if hit["type"] == "hit"]
            expected = []
            for i in range(self.TIMES):
                path = opens.missing if i % 2 else opens.there
                got = NO_SUCH_FILE if i % 2 else fd
                expected += [("in", {"path": path}), ("kernel_in", {"path": path}),
                             ("kernel_out", {"fd": got}), ("out", {"fd": got})]
            self.assert_same([(hit["event"], hit["args"]) for hit in hits], expected)
            self.assertEqual({(hit["pid"], hit["tid"]) for hit in hits}, {(opens.pid, opens.pid)})
            times = [hit["monotonic_ns"] for hit in hits]
            self.assertEqual(times, sorted(times))
            opens.assert_unharmed(self)
        self.assert_nothing_left()

    def test_all_or_none(self):
        """Whichever line is refused, by whomever, the others are not there afterwards."""
        with Opens() as opens:
            self.run_ok("attach", "--pid", str(opens.pid))
            good = lines(opens)
            before = maps.changed_text(opens.pid)
            bad = [("p:mix/bad no_such_function", "BAD_PROBE_ADDR"),
                   ("p:mix/bad vfs_read %zz", "BAD_REG_NAME"),
                   ("p:mix/bad vfs_read+3", "BAD_INSN_BNDRY"),
                   ("sched:no_such_event", "NO_SUCH_EVENT"),
                   (f"p:mix/bad {opens.path}:no_such_function", "SYMBOL_NOT_FOUND"),
                   (f"p:mix/bad {opens.path}:open_one %zz", "BAD_REG_NAME")]
            for line, reason in bad:
                with self.subTest(line):
                    words = [word for text in (*good, line) for word in ("-e", text)]
                    refused = self.daemon.run("define", "--pid", str(opens.pid), *words)
                    self.assertNotEqual(refused.code, 0)
                    self.assertIn(reason, refused.err)
                    self.assert_nothing_left()
                    self.assertEqual(self.objects("list"), [])
                    self.assertEqual(maps.changed_text(opens.pid), before)
            words = [word for text in good for word in ("-e", text)]
            refused = self.daemon.run("define", "--pid", str(opens.pid), *words, "--filter",
                                      "no_such_field == 1")
            self.assertEqual(refused.code, 2, refused.err)
            self.assertIn("Field not found", refused.err)
            self.assert_nothing_left()
            self.assertEqual(maps.changed_text(opens.pid), before)
            self.run_ok("define", "--pid", str(opens.pid), *words)
            self.assertEqual({probe["event"]: probe["mechanism"] == "kernel"
                              for probe in self.objects("list")},
                             {"in": False, "out": False, "kernel_in": True, "kernel_out": True})
            self.run_ok("delete", "mix/")
            self.assert_nothing_left()
            self.run_ok("detach", "--pid", str(opens.pid))
            opens.assert_unharmed(self)


if __name__ == "__main__":
    unittest.main()
