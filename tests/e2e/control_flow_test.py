"""Programs that do not return as they were called: unwinding, new mappings, new processes, signals."""

import unittest

from support import elf, probectl, trace
from support.paths import target
from support.process import run


class ControlFlow(unittest.TestCase):
    def same_as_native(self, path, arguments, definitions, *options):
        """Runs with probes; output and status must be the program's own. Returns the counts."""
        native = run([path, *arguments])
        with probectl.run(definitions, [path, *arguments], *options) as session:
            code = session.finish(60)
            self.assertEqual((code, session.program.out), (native.code, native.out),
                             session.program.err)
            self.records = session.records
            return trace.counts(self.records)

    def test_longjmp(self):
        for level in ("O0", "O2"):
            path = target("unwind", f"gcc-{level}-pie-nocf")
            counts = self.same_as_native(path, ["20"], [
                f"{kind}:e/{kind}_{name} {path}:{name}" for kind in "pr"
                for name in ("dive", "interrupted", "recurse")])
            self.assertEqual(counts["p_dive"], 60)
            self.assertEqual(counts["p_interrupted"], 20)
            self.assertEqual(counts["p_recurse"], 20 * 201)
            self.assertEqual(counts["r_recurse"], 20 * 201, "deeper than the kernel's 64")
            self.assertEqual((counts["r_dive"], counts["r_interrupted"]), (0, 0))

    def test_exceptions(self):
        for compiler in ("gcc", "clang"):
            for level in ("O0", "O2", "O3"):
                path = target("exceptions", f"{compiler}-{level}-pie-nocf")
                with self.subTest(path.name):
                    counts = self.same_as_native(path, ["12"], [
                        f"{kind}:e/{kind}_{name} {path}:{name}" for kind in "pr"
                        for name in ("thrower", "rethrower", "nested", "silent")])
                    self.assertEqual((counts["p_nested"], counts["r_nested"]), (12, 12))
                    self.assertEqual((counts["p_silent"], counts["r_silent"]), (12, 12))
                    self.assertEqual(counts["r_rethrower"], 0)

    def test_plugin_loaded_later_and_twice(self):
        path, plugin = target("loader"), target("plugin")
        counts = self.same_as_native(path, [str(plugin), "50"],
                                     [f"p:e/p {plugin}:plugin_work n=%di", f"r:e/r {plugin}:"
                                      f"{elf.offset(plugin, 'plugin_work'):#x} v=$retval"])
        self.assertEqual(counts, {"p": 100, "r": 100})

    def test_prelinked_plugin(self):
        """Its addresses are far from its offsets, and not where it is loaded, either, if others are."""
        path, plugin = target("loader"), target("prelinked")
        symbol = elf.load(str(plugin)).symbols["plugin_work"]
        self.assertGreater(symbol.address, 0x3000000000)
        for place in ("plugin_work", f"{symbol.offset:#x}"):
            counts = self.same_as_native(path, [str(plugin), "50"], [
                f"p:e/p {plugin}:{place} n=%di", f"r:e/r {plugin}:{place} v=$retval"])
            self.assertEqual(counts, {"p": 100, "r": 100})

    def test_static_and_position_independent(self):
        path = target("unwind-static", "gcc-O2-pie-nocf")
        counts = self.same_as_native(path, ["20"], [
            f"{kind}:e/{kind}_{name} {path}:{name}" for kind in "pr"
            for name in ("dive", "interrupted", "recurse")])
        self.assertEqual((counts["p_recurse"], counts["r_recurse"]), (20 * 201, 20 * 201))
        self.assertEqual((counts["p_dive"], counts["r_dive"]), (60, 0))

    def test_fork_vfork_exec(self):
        path = target("forker")
        counts = self.same_as_native(path, ["4", "25"], [f"p:e/w {path}:work", f"r:e/x {path}:work"])
        self.assertEqual(counts, {"w": 150, "x": 150})
        self.assertEqual(len({record.pid for record in self.records}), 5)

    def test_timer_signals(self):
        path = target("timers")
        counts = self.same_as_native(path, ["20000"], [
            f"p:e/w {path}:tick_work", f"r:e/x {path}:tick_work"])
        self.assertEqual(counts, {"w": 20000, "x": 20000})

    def test_faults_and_traps_of_the_programs_own(self):
        path = target("faults")
        sites = elf.load(str(path)).symbols
        counts = self.same_as_native(path, ["6"], [
            f"p:e/load {path}:load_it", f"p:e/site {path}:{sites['fault_site'].offset:#x}",
            f"p:e/int3 {path}:int3_it", f"p:e/ud2 {path}:ud2_it",
            f"p:e/after {path}:{sites['int3_site'].offset + 1:#x}"])
        self.assertEqual((counts["load"], counts["int3"], counts["ud2"]), (6, 6, 6))
        # An instruction that faults starts again through its breakpoint, as under kernel uprobes.
        self.assertEqual(counts["site"], 12)

    def test_probe_on_the_programs_own_int3_is_refused(self):
        path = target("faults")
        offset = elf.load(str(path)).symbols["int3_site"].offset
        with probectl.run([f"p:e/t {path}:{offset:#x}"], [path, "1"]) as session:
            session.finish(20)
            self.assertEqual(session.records, [])
            self.assertRegex(session.program.err, "(?i)int3|breakpoint|trap")


if __name__ == "__main__":
    unittest.main()
