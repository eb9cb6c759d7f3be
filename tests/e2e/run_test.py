"""probectl run: probes are armed before the first instruction, and the program does not notice."""

import os
import signal
import unittest

from support import elf, probectl, trace
from support.paths import target
from support.process import run, wait_until


def function(path, symbol):
    return f"{path}:{elf.offset(path, symbol):#x}"


class Run(unittest.TestCase):
    def test_first_instruction_and_main_are_seen(self):
        path = target("conformance", "gcc-O1-pie-nocf")
        definitions = [f"p:e/start {function(path, '_start')}", f"p:e/main {function(path, 'main')} "
                       "argc=%di:s32 name=+0(+0(%si)):string",
                       f"p:e/me {function(path, 'probe_me')} i=%di:s64 s=+0(%dx):string"]
        native = run([path, "4", "text"])
        with probectl.run(definitions, [path, "4", "text"]) as session:
            self.assertEqual((session.finish(), session.program.out), (0, native.out))
            events = [record.event for record in session.records]
            self.assertEqual(events, ["start", "main"] + ["me"] * 4, session.program.err)
            self.assertTrue(session.records[1].text.endswith(f'argc=3 name="{path}"'))
            self.assertTrue(session.records[5].text.endswith('i=3 s="text"'))

    def test_symbols_of_the_extended_dialect(self):
        path = target("conformance", "gcc-O1-pie-nocf")
        with probectl.run([f"p:e/a {path}:probe_me a=$arg1:u8 d=$arg4",
                           f"r:e/b {path}:other v=$retval:s64 was=$arg1:s64"],
                          [path, "3"]) as session:
            self.assertEqual(session.finish(), 0)
            texts = [record.arguments for record in session.records]
            self.assertEqual(texts, ["a=0 d=0x1234567890abcdef", "v=0 was=0",
                                     "a=1 d=0x1234567890abcdef", "v=2 was=1",
                                     "a=2 d=0x1234567890abcdef", "v=4 was=2"])

    def test_json_holds_the_same_values(self):
        path = target("conformance", "gcc-O1-pie-nocf")
        with probectl.run([f"p:e/a {path}:probe_me a=%di:u8 s=+0(%dx):string"], [path, "2", "x"],
                          output_format="json") as session:
            self.assertEqual(session.finish(), 0)
            hits = [one for one in session.objects if one["type"] == "hit"]
            self.assertEqual([one["args"] for one in hits], [{"a": 0, "s": "x"}, {"a": 1, "s": "x"}])
            self.assertEqual([one["sequence"] for one in hits],
                             sorted(one["sequence"] for one in hits))
            self.assertTrue(all(one["monotonic_ns"] > 0 and one["wall_ns"] > 10**18
                                for one in hits))

    def test_exit_status_and_fatal_signals_are_the_programs(self):
        path = "/usr/bin/bash"
        for script, code in (("exit 0", 0), ("exit 37", 37), ("kill -SEGV $$", 128 + 11),
                             ("kill -TERM $$", 128 + 15)):
            with self.subTest(script), probectl.run([f"p:e/m {path}:main"],
                                                    [path, "-c", script]) as session:
                self.assertEqual(session.finish(), code, session.program.err)
                self.assertEqual(trace.counts(session.records), {"m": 1})

    def test_command_that_does_not_exist(self):
        with probectl.run(["p:e/m /usr/bin/bash:main"], ["/nonexistent/program"]) as session:
            self.assertEqual(session.finish(), 127)
            self.assertIn("/nonexistent/program", session.program.err)

    def test_standard_input_is_the_programs(self):
        with probectl.run(["p:e/r libc.so.6:read n=%dx"],
                          ["/usr/bin/cat"]) as session:
            session.program.say("through\n")
            session.program.wait_for("through")
            self.assertEqual(session.finish(), 0)
            self.assertIn("r", trace.counts(session.records))

    def test_interrupt_ends_the_program_and_reports(self):
        path = target("counter")
        with probectl.run([f"p:e/w {path}:work"], [path], new_session=True) as session:
            session.wait_for_records(50)
            os.killpg(session.program.pid, signal.SIGINT)
            code = session.finish(10)
            self.assertIn(code, (0, 130, 128 + signal.SIGINT))
            wait_until(lambda: session.program.process.poll() is not None, 5)

    def test_count_and_duration_end_it(self):
        path = target("counter")
        for option in (["--count", "5"], ["--duration", "1"]):
            with self.subTest(option), probectl.run([f"p:e/w {path}:work"], [path],
                                                    *option) as session:
                session.wait_for_records(5)
                session.finish(20)
                if option[0] == "--count":
                    self.assertEqual(len(session.records), 5)


if __name__ == "__main__":
    unittest.main()
