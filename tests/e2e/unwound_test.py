"""Calls that are left without a return are told: as many as the program has counted itself, in the
counters and in the stream, whoever compiled it."""

import collections
import itertools
import re
import subprocess
import unittest

from support import probectl
from support.paths import target

LINES = ("return 3 4", "throw 5 4", "library 5 4", "unhandled 3 4", "longjmp 5 4", "longjmp 1 100",
         "exit 3 4", "cancel 2 4", "throw 500 2", "longjmp 3 20")
_PROBE = re.compile(r"r:e/(?P<name>\w+)  hits (?P<hits>\d+)  shown (?P<shown>\d+)"
                    r"  missed (?P<missed>\d+)(?: \((?P<unwound>\d+) unwound\))?  lost 0\n")


def counted(line):
    """{function: (entered, returned)} of an answer."""
    words = line.split()
    return {words[i]: (int(words[i + 1]), int(words[i + 2])) for i in range(0, len(words), 3)}


class Unwound(unittest.TestCase):
    def run_program(self, path, *options):
        text = "".join(line + "\n" for line in LINES)
        native = subprocess.run([path], input=text, capture_output=True, text=True, check=True,
                                timeout=60)
        functions = counted(native.stdout.splitlines()[-1])
        definitions = [f"r:e/{name} {path}:{name}" for name in functions]
        with probectl.run(definitions, [path], *options, output_format="json") as session:
            session.program.say(text)
            self.assertEqual(session.finish(60), 0, session.program.err)
            self.assertEqual(session.program.out, native.stdout)
            return functions, session.objects, session.program.err

    def check(self, path, *options):
        functions, objects, err = self.run_program(path, *options)
        left, shown = collections.Counter(), collections.Counter()
        for entry in objects:
            if entry["type"] == "unwound":
                left[entry["event"]] += entry["calls"]
                self.assertEqual((entry["group"], entry["kind"]), ("e", "return"))
            elif entry["type"] == "hit":
                shown[entry["event"]] += 1
        for name, (entered, returned) in functions.items():
            with self.subTest(name):
                self.assertEqual((shown[name], left[name]), (returned, entered - returned), err)
        summary = {match["name"]: match for match in _PROBE.finditer(err)}
        self.assertEqual(set(summary), set(functions), err)
        for name, (entered, returned) in functions.items():
            numbers = {key: int(summary[name][key] or 0)
                       for key in ("hits", "shown", "missed", "unwound")}
            self.assertEqual(numbers, {"hits": entered, "shown": returned,
                                       "missed": entered - returned,
                                       "unwound": entered - returned}, err)
        types = [entry["type"] for entry in objects]
        self.assertLess(types.count("unwound"), 1000)
        end = [entry.get("change") for entry in objects].index("exited")
        self.assertNotIn("unwound", types[end:])
        self.assertIn("unwound up to now: left without a return", err)

    def test_every_way_to_leave_a_call(self):
        for compiler, level in itertools.product(("gcc", "clang"), ("O0", "O2")):
            path = target("abandoning", f"{compiler}-{level}-pie-nocf")
            for options in ((), ("--mechanism", "breakpoint")):
                with self.subTest(path.name, options=options):
                    self.check(path, *options)


if __name__ == "__main__":
    unittest.main()
