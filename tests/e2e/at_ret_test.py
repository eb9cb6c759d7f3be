"""Return probes on ret instructions, in C and C++: the program's own count and values of its returns."""

import json
import re
import unittest

from support import disassembly, elf, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, run

NAMES = ("tiny", "early", "dive", "choose", "tail", "seldom", "over", "landed")
VARIANTS = [f"{compiler}-{level}-{link}-nocf" for compiler in ("gcc", "clang")
            for level in ("O0", "O2") for link in ("pie", "nopie")]


def at_ret(definitions, command, *options):
    """Runs it to its end, which must be the same as without probes."""
    native = run(command)
    with probectl.run(definitions, command, "--at-ret", *options) as session:
        code = session.finish(60)
        assert (code, session.program.out) == (native.code, native.out), session.program.err
        return native.out, session.records, session.program.err


def values(records, event):
    return [int(record.arguments.split("=")[1]) for record in records if record.event == event]


def definitions_and_sites(path, definitions):
    """What `list` and `sites` show of them in a program that runs."""
    with Program([path, "1000000000000"]) as program, Daemon() as daemon:
        with probectl.Attached(program.pid, definitions, "--at-ret", address=daemon.address):
            return (objects(daemon.run("list", "--json").out),
                    objects(daemon.run("sites", "--json").out))


def objects(lines):
    return [json.loads(line) for line in lines.splitlines()]


class AtRet(unittest.TestCase):
    def test_counts_and_values_are_the_programs_own(self):
        for variant in VARIANTS:
            path = target("leaves", variant)
            with self.subTest(path.name):
                out, records, err = at_ret([f"r:t/{name} {path}:{name} v=$retval:s64"
                                            for name in NAMES], [path, "60"])
                tallies = {name: (int(count), int(total)) for name, count, total in
                           (line.split() for line in out.splitlines())}
                jumps = {name for name in NAMES if f"r:t/{name} does not count" in err}
                self.assertEqual(jumps, {"tail"} if "-O2-" in variant else set(), err)
                for name in NAMES:
                    count, total = tallies[name]
                    if name in jumps:  # what it jumps to returns instead of it
                        count, total = count - tallies["landed"][0], total - tallies["landed"][1]
                    returned = values(records, name)
                    self.assertEqual((len(returned), sum(returned)), (count, total), name)

    def test_events_tell_function_and_caller(self):
        path = target("leaves", "gcc-O2-pie-nocf")
        _, records, _ = at_ret([f"r:t/dive {path}:dive"], [path, "19"])
        symbols = elf.load(str(path)).symbols
        callers = set()
        for record in records:
            caller, callee = (int(word, 16) for word in
                              re.match(r"\((\w+) <- (\w+)\)", record.text).groups())
            self.assertEqual((callee - symbols["dive"].address) & 0xfff, 0)
            callers |= {name for name in ("dive", "main")
                        if 0 < caller - (callee - symbols["dive"].address)
                        - symbols[name].address < symbols[name].size}
        self.assertEqual(callers, {"dive", "main"})

    def test_sites_are_the_rets_that_objdump_shows(self):
        for variant in VARIANTS:
            path = target("leaves", variant)
            with self.subTest(path.name):
                own = {"dive", "choose", "early", "seldom"}
                parts = own | {f"{name}.cold" for name in own}  # of gcc at -O2
                shown = {at for at, _, text in disassembly.boundaries(path, parts.__contains__)
                         if re.match(r"(repz |bnd )?ret", text)}
                probes, sites = definitions_and_sites(path, [
                    f"r:t/{name} {path}:{name}" for name in sorted(own)])
                self.assertEqual({site["offset"] for site in sites}, shown)
                self.assertEqual([probe["at_ret"] for probe in probes], [True] * 4)
                self.assertEqual({(probe["event"], probe["symbol"]) for probe in probes},
                                 {(name, f"{name}+0x0") for name in own})

    def test_longjmp_and_recursion(self):
        for level in ("O0", "O2"):
            path = target("unwind", f"gcc-{level}-pie-nocf")
            _, records, _ = at_ret([f"r:e/{name} {path}:{name}"
                                    for name in ("dive", "interrupted", "recurse")], [path, "20"])
            self.assertEqual(trace.counts(records), {"recurse": 20 * 201})

    def test_exceptions(self):
        for variant in (f"{compiler}-{level}-pie-nocf" for compiler in ("gcc", "clang")
                        for level in ("O0", "O2")):
            path = target("exceptions", variant)
            with self.subTest(path.name):
                _, records, _ = at_ret([f"r:e/{name} {path}:{name}" for name in
                                        ("thrower", "nested", "silent")], [path, "12"])
                counts = trace.counts(records)
                self.assertEqual((counts["nested"], counts["silent"]), (12, 12))
                self.assertEqual(counts["thrower"], 0)

    def test_sizes_that_disagree(self):
        """Both rets where the larger size is one function; else refused by name."""
        path = target("sized")
        _, records, err = at_ret([f"r:s/{name} {path}:{name} v=$retval:s32" for name in
                                  ("short_symbol", "short_frame", "neighbour")], [path])
        self.assertEqual(values(records, "short_symbol"), [1, 2])
        self.assertEqual(values(records, "short_frame"), [3, 4])
        self.assertEqual(values(records, "neighbour"), [6, 6])
        for name, why in (("long_symbol", "are another function's"),
                          ("with_data", "are no instructions")):
            with probectl.run([f"r:s/x {path}:{name}"], [path], "--at-ret") as session:
                self.assertEqual(session.finish(20), 2)
                self.assertRegex(session.program.err, f"(?s){name}.*{why}.*FUNCTION_END_DISPUTED")

    def test_ways_out_that_are_not_seen_are_told(self):
        path = target("sized")
        _, records, err = at_ret([f"r:s/{name} {path}:{name} v=$retval:s32" for name in
                                  ("runs_on", "goes_elsewhere")], [path])
        self.assertEqual(values(records, "runs_on"), [0])
        self.assertEqual(values(records, "goes_elsewhere"), [0])
        self.assertIn("r:s/runs_on does not count what leaves its function by 1 jump to other "
                      "functions", err)
        self.assertIn("r:s/goes_elsewhere does not count what leaves its function by 1 ret to "
                      "elsewhere than the caller", err)


class Refusals(unittest.TestCase):
    def refused(self, line, *options, path=None):
        path = path or target("leaves", "gcc-O2-pie-nocf")
        with probectl.run([line], [path, "3"], *options) as session:
            self.assertEqual(session.finish(20), 2, session.program.err)
            return session.program.err

    def test_arguments_are_gone(self):
        path = target("leaves", "gcc-O2-pie-nocf")
        self.assertIn("ARGUMENT_AT_RETURN", self.refused(f"r:t/x {path}:early $arg1", "--at-ret"))

    def test_a_function_without_a_ret(self):
        path = target("unwind", "gcc-O2-pie-nocf")
        start = elf.load(str(path)).symbols["_start"].offset
        error = self.refused(f"r:t/x {path}:{start:#x}", "--at-ret")
        self.assertIn("FUNCTION_NEVER_RETURNS", error)

    def test_inside_a_function_and_a_part_set_aside(self):
        path = target("leaves", "gcc-O2-pie-nocf")
        symbols = elf.load(str(path)).symbols
        inside = symbols["tiny"].offset + symbols["tiny"].size - 1  # its ret
        for offset in (inside, symbols["seldom.cold"].offset):
            self.assertIn("NOT_FUNCTION_ENTRY",
                          self.refused(f"r:t/x {path}:{offset:#x}", "--at-ret"))

    def test_the_kernels_return_probes(self):
        path = target("leaves", "gcc-O2-pie-nocf")
        error = probectl.probectl("run", "--at-ret", "--mechanism", "kernel", "-e",
                                  f"r:t/x {path}:{elf.load(str(path)).symbols['tiny'].offset:#x}",
                                  "--", str(path), "1")
        self.assertNotEqual(error.code, 0)
        self.assertIn("NO_AT_RET_IN_KERNEL", error.err)

    def test_a_refused_hijack_names_the_option(self):
        """vfork shares its stack with a child that returns first, on its own."""
        path = target("forker")
        error = self.refused("r:t/x libc.so.6:vfork", path=path)
        self.assertIn("--at-ret", error)


if __name__ == "__main__":
    unittest.main()
