"""The test support itself, proven without the product."""

import subprocess
import unittest

from support import disassembly, elf, maps, stepping, trace
from support.paths import target
from support.process import Program, run
from support.tracefs import Tracefs


class Targets(unittest.TestCase):
    """Every self-checking program gets the same answer in every build."""

    def test_all_sweep_builds(self):
        programs = sorted(target("threads").parent.glob("sweep-*"))
        self.assertGreaterEqual(len(programs), 12)
        outputs = {(run([program]).code, run([program]).out) for program in programs}
        self.assertEqual(len(outputs), 1)
        code, out = outputs.pop()
        self.assertEqual((code, out.count("ok\n")), (0, 13), out)

    def test_self_checks(self):
        expected = {
            ("threads", "32", "50"): "calls 1600 sum ok\n",
            ("churn", "100"): "calls 100\n",
            ("unwind", "20"): "entries 80 returns 0 sum ok\n",
            ("forker", "4", "10"): "total 60\n",
            ("faults", "5"): "mended 5 trapped 5 skipped 5 strange 0 sum 45\n",
            ("timers", "200000"): "calls 200000 strange 0 sum ok\n",
            ("loader", str(target("plugin")), "10"): "calls 20 sum 740\n",
        }
        for (name, *arguments), out in expected.items():
            with self.subTest(name):
                program = run([target(name), *arguments])
                self.assertEqual((program.code, program.out), (0, out))


class Elf(unittest.TestCase):
    def test_against_nm_and_objdump(self):
        path = str(target("values", "gcc-O1-pie-nocf"))
        listing = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        address = next(int(line.split()[0], 16) for line in listing.splitlines()
                       if line.endswith(" T probe_me"))
        self.assertEqual(elf.load(path).symbols["probe_me"].address, address)
        self.assertEqual(elf.offset(path, "probe_me"), address)  # gcc's first segments are linear
        first = disassembly.boundaries(path, lambda name: name == "probe_me")[0]
        self.assertEqual(first[0], address)


class Text(unittest.TestCase):
    def test_sees_a_kernel_breakpoint_and_its_absence(self):
        path = target("counter")
        with Tracefs() as tracefs, Program([path]) as program:
            program.wait_for("ready")
            self.assertEqual(maps.changed_text(program.pid), [])
            offset = elf.offset(path, "work")
            tracefs.define(f"p:{tracefs.group}/w {path}:{offset:#x} n=%di")
            tracefs.enable_all()
            tracefs.wait_for_records(3, program.pid)
            self.assertEqual([(c[1], c[2]) for c in maps.changed_text(program.pid)],
                             [(offset, 0xcc)])
            tracefs.disable_all()
            self.assertEqual(maps.changed_text(program.pid), [])
            self.assertGreater(tracefs.profile()["w"], 2)


class Stepping(unittest.TestCase):
    """The reference tracer against the kernel: equal visits at every boundary of a function."""

    def test_counts_equal_uprobe_profile(self):
        path = target("sweep", "gcc-O2-pie-nocf")
        wanted = ("sw_crc32", "sw_collatz", "sw_ackermann")
        places = [at for at, _, _ in disassembly.boundaries(path, lambda n: n in wanted)]
        truth = stepping.count(path, places)
        with Tracefs() as tracefs:
            for at in places:
                tracefs.define(f"p:{tracefs.group}/x{at:x} {path}:{at:#x}")
            tracefs.enable_all()
            self.assertEqual(run([path]).code, 0)
            tracefs.disable_all()
            profile = tracefs.profile()
        self.assertEqual({at: profile[f"x{at:x}"] for at in places},
                         {at: truth.visits.get(at, 0) for at in places})
        self.assertGreater(sum(truth.visits.values()), 1000)


class TraceText(unittest.TestCase):
    def test_strings_may_hold_newlines(self):
        head = "           a-b c-123     [001] ....."
        text = (f"# tracer: nop\n{head}  12.000001: e1: (0x10) s=\"x\ny\"\n"
                f"{head}  12.000002: e2: (0x11 <- 0x10) v=1\n")
        first, second = trace.records(text)
        self.assertEqual((first.comm, first.pid, first.text), ("a-b c", 123, '(0x10) s="x\ny"'))
        self.assertEqual(second.text, "(0x11 <- 0x10) v=1")


if __name__ == "__main__":
    unittest.main()
