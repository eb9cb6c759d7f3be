"""The extended dialect: arguments by number, floating point, long strings, raw bytes, missed returns."""

import json
import unittest

from support import elf, probectl, trace
from support.paths import target
from support.process import run


class Extended(unittest.TestCase):
    def records(self, definitions, command, *options, **more):
        native = run(command)
        with probectl.run(definitions, command, *options, **more) as session:
            self.assertEqual((session.finish(60), session.program.out),
                             (native.code, native.out), session.program.err)
            return session.objects if more.get("output_format") == "json" else session.records

    def test_arguments_by_number_at_entry_and_return(self):
        path = target("values", "gcc-O1-pie-nocf")
        every = " ".join(f"a{n}=$arg{n}:s64" for n in range(1, 9))
        records = self.records([f"p:e/p {path}:on_stack {every}",
                                f"r:e/r {path}:on_stack v=$retval:s64 {every}"], [path, "3"])
        seven = "a1=1 a2=2 a3=3 a4=4 a5=5 a6=6 a7=7"
        self.assertEqual([r.arguments for r in records],
                         [line for i in range(3) for line in
                          (f"{seven} a8={i}", f"v={21 + 7 * i} {seven} a8={i}")])

    def test_floating_point(self):
        path = target("sweep", "gcc-O2-pie-nocf")
        records = self.records([f"p:e/p {path}:sw_return_double v=%xmm0:f64",
                                f"r:e/r {path}:sw_return_double v=%xmm0:f64",
                                f"p:e/f {path}:sw_return_float v=%xmm0:f32"], [path])
        values = {name: [float(r.arguments.split("=")[1]) for r in records if r.event == name]
                  for name in ("p", "r", "f")}
        inputs = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        self.assertEqual(values, {"p": inputs, "r": [v / 4 + 1 for v in inputs], "f": inputs})

    def test_long_strings_are_cut_and_say_so(self):
        path = target("values", "gcc-O1-pie-nocf")
        definition = [f"p:e/p {path}:probe_me long=+0(+136(%si)):string text=+0(%dx):string"]
        whole = self.records(definition, [path, "1"], output_format="json")
        cut = self.records(definition, [path, "1"], "--string-limit", "100", output_format="json")
        hit = next(one for one in whole if one["type"] == "hit")
        self.assertEqual((hit["args"], "truncated" in hit),
                         ({"long": "L" * 3000, "text": "world"}, False))
        hit = next(one for one in cut if one["type"] == "hit")
        self.assertEqual((hit["args"]["text"], hit["truncated"]), ("world", ["long"]))
        self.assertLessEqual(len(hit["args"]["long"]), 100)
        self.assertGreaterEqual(len(hit["args"]["long"]), 99)

    def test_string_that_ends_at_a_hole(self):
        """The readable part is shown; the kernel says (fault)."""
        path = target("values", "gcc-O1-pie-nocf")
        records = self.records([f"p:e/p {path}:probe_me c=+0(+128(%si)):string"], [path, "1"])
        self.assertEqual(len(records), 1)
        self.assertIn(records[0].arguments, ('c="ccccccccc"', "c=(fault)"))

    def test_raw_bytes(self):
        path = target("values", "gcc-O1-pie-nocf")
        records = self.records([f"p:e/p {path}:probe_me b=+0(+104(%si)):bytes(\\5) "
                                "z=+0(%dx):bytes(\\0)"], [path, "1"])
        self.assertEqual(records[0].arguments, r'b="\x80\xff\"q\\" z=""')

    def test_bytes_that_are_not_utf8_pass_unharmed(self):
        path = target("values", "gcc-O1-pie-nocf")
        records = self.records([f"p:e/p {path}:probe_me b=+0(+104(%si)):string"], [path, "1"])
        self.assertEqual(records[0].arguments, 'b="\x80\xff"q\\\t\x01z"')

    def test_deep_recursion_returns_every_time(self):
        path = target("unwind", "gcc-O2-pie-nocf")
        records = self.records([f"p:e/p {path}:recurse d=%di:s32",
                                f"r:e/r {path}:recurse v=$retval:s64 d=$arg1:s32"], [path, "2"])
        counts = trace.counts(records)
        self.assertEqual(counts, {"p": 402, "r": 402})
        for record in records:
            if record.event == "r":
                v, d = (int(word.split("=")[1]) for word in record.arguments.split())
                self.assertEqual(v, d * (d + 1) // 2)

    def test_max_active_counts_what_it_misses(self):
        path = target("unwind", "gcc-O2-pie-nocf")
        native = run([path, "2"])
        with probectl.run([f"p:e/p {path}:recurse", f"r:e/r {path}:recurse"], [path, "2"],
                          "--max-active", "10") as session:
            self.assertEqual((session.finish(), session.program.out), (0, native.out))
            self.assertEqual(trace.counts(session.records), {"p": 402, "r": 20})
            self.assertRegex(session.program.err, "382")

    def test_forced_offset_inside_an_instruction(self):
        """With --force the byte is written; one that no run reaches harms nobody."""
        path = target("conformance", "gcc-O1-pie-nocf")
        offset = elf.offset(path, "_start") + 1
        refused = probectl.probectl("run", "-e", f"p:e/x {path}:{offset:#x}", "--", str(path))
        self.assertNotEqual(refused.code, 0)
        self.assertEqual(refused.out, "")


class Check(unittest.TestCase):
    """probectl check: judges without touching anything."""

    def test_lines_are_judged_in_order(self):
        path = target("conformance", "gcc-O1-pie-nocf")
        lines = [f"p:g/a {path}:0x1000 %di", f"p:g/a {path}:0x1000 %di", f"p:g/b {path}:0x1000 %zz",
                 "-:g/a", "-:g/a"]
        result = probectl.probectl("check", "--dialect", "kernel", stdin="\n".join(lines) + "\n")
        answers = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual([a["ok"] for a in answers], [True, False, False, True, False], result.err)
        self.assertEqual([a["errno"] for a in answers][1:3], [17, 22])
        self.assertEqual(answers[2]["message"], "Invalid register name")
        self.assertEqual(answers[2]["caret"], len(f"p:g/b {path}:0x1000 "))
        self.assertEqual(answers[0]["readback"],
                         [f"p:g/a {path}:0x0000000000001000 arg1=%di"])


if __name__ == "__main__":
    unittest.main()
