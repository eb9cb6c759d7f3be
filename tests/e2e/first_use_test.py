"""What people do first who come from other tools, and what they are told when it does not work."""

import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from support import elf, probectl, trace
from support.daemon import Daemon
from support.paths import PROBECTL, PROBED, target
from support.process import Program
from support.wait import wait_until
from terminal import Terminal

_SUMMARY = re.compile(r"probectl: (?P<shown>\d+) events? in [\d.]+ s, (?P<lost>\d+) lost, ")
_PROBE = re.compile(r"probectl:   p:(?P<name>\S+)(?: in (?P<pid>\d+) \([^)]*\))?  hits (?P<hits>\d+)"
                    r"  shown (?P<shown>\d+)  missed (?P<missed>\d+)  lost (?P<lost>\d+)"
                    r"(?:  not shown (?P<unwanted>\d+))?\n")


def numbers(match):
    return {name: int(text or 0) for name, text in match.groupdict().items() if name != "name"}


class Case(unittest.TestCase):
    def start(self, *argv, **more):
        program = Program(argv, **more)
        self.addCleanup(program.__exit__)
        return program

    def counter(self):
        program = self.start(target("counter"))
        program.wait_for("ready")
        return program

    def daemon(self, *options):
        daemon = Daemon(options=options)
        self.addCleanup(daemon.__exit__)
        return daemon.__enter__()


class RelativePaths(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.path = shutil.copy(target("counter"), self.folder / "prog")
        self.offset = elf.offset(self.path, "work")

    def probectl(self, *words, code=0, address=None):
        env = probectl.environment() | ({"PROBED_ADDRESS": address} if address else {})
        program = self.start(PROBECTL, *words, env=env, cwd=self.folder)
        self.assertEqual(program.finish(60), code, program.err)
        return program

    def test_definitions(self):
        program = self.start(self.path)
        program.wait_for("ready")
        attach = ("attach", "--pid", program.pid, "--count", "3", "-e")
        for line in ("p:e/w ./prog:work", f"p:e/w ../{self.folder.name}/prog:{self.offset:#x}"):
            done = self.probectl(*attach, line)
            self.assertEqual(len(trace.records(done.out)), 3)
        done = self.probectl(*attach, f"p:e/w ./prog:{self.offset:#x}", "--dialect", "kernel")
        self.assertEqual(len(trace.records(done.out)), 3)
        run = self.start(PROBECTL, "run", "-e", "p:e/w ./prog:work", "--", "./prog",
                         env=probectl.environment(), cwd=self.folder)
        run.wait_for(": w: (0x")
        self.assertEqual(run.finish(20), 0, run.err)
        done = self.probectl("attach", "--exe", "./prog", "--count", "3", "-e", "p:e/w prog:work")
        self.assertEqual(len(trace.records(done.out)), 3)

    def test_errors_show_what_was_typed(self):
        program = self.start(self.path)
        program.wait_for("ready")
        for line, caret in (("p:e/w ./prog:wrok", "wrok"), ("p:e/w ./prog:work n=%zz", "%zz"),
                            ("p:e/w ./porg:work", "./porg")):
            done = self.probectl("attach", "--pid", program.pid, "-e", line,
                                 code=2 if "zz" in line else 5)
            command, pointer = re.search(r"\n  Command: (.*)\n {11}( *)\^\n", done.err).groups()
            self.assertEqual(command, line)
            self.assertEqual(len(pointer), line.index(caret))

    def test_places_and_files(self):
        for place in ("./prog:work", "prog:work", f"{self.path}:work"):
            done = self.probectl("explain", place)
            self.assertIn(f"{self.path}:{self.offset:#x}\n", done.out)
        self.assertIn(" work\n", self.probectl("symbols", "--path", "./prog", "work").out)
        self.assertIn(f"{self.path}: ", self.probectl("explain", "--stats", "./prog").out)

    def test_define_and_delete(self):
        program = self.start(self.path)
        program.wait_for("ready")
        address = self.daemon().address
        self.probectl("attach", "--pid", program.pid, address=address)
        self.probectl("define", "--pid", program.pid, "-e", "p:e/w ./prog:work", address=address)
        done = self.probectl("list", "--definitions", address=address)
        self.assertEqual(done.out, f"p:e/w {self.path}:0x{self.offset:016x}\n")
        self.probectl("delete", f"-:e/w ./prog:0x{self.offset:016x}", address=address)
        self.assertEqual(self.probectl("list", address=address).out, "")


class Accounts(Case):
    """hits = shown + missed + lost, and hits are what the program has counted."""

    def flood(self, calls, *, small_ring=True, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        config = Path(folder.name, "config.toml")
        config.write_text(f"[optimization]\nring_bytes = {131072 if small_ring else 67108864}\n")
        daemon = self.daemon("--config", str(config))
        path = target("threads")
        with Program([path, "2", calls, "wait"]) as program:
            program.wait_for("ready")
            with probectl.Attached(program.pid, [f"p:f/step {path}:step n=%di:u64"],
                                   address=daemon.address, **more) as session:
                jumps = [site["mechanism"] for site in daemon.settled_sites()]
                if jumps != ["optimized"]:
                    self.skipTest("no jumps on this machine")
                program.say("\n")
                self.assertEqual(program.finish(60), 0)
                self.assertEqual(session.finish(60), 0, session.program.err)
                counted = int(re.search(r"calls (\d+) sum ok", program.out)[1])
                self.assertEqual(counted, 2 * calls)
                if more.get("output_format") == "json":
                    self.objects = session.objects
                return counted, session

    def assert_balanced(self, counted, session):
        err = session.program.err
        total, probe = numbers(_SUMMARY.search(err)), numbers(_PROBE.search(err))
        self.assertEqual(probe["hits"], counted, err)
        self.assertEqual(probe["shown"] + probe["missed"] + probe["lost"], counted, err)
        self.assertEqual((total["shown"], total["lost"]), (probe["shown"], probe["lost"]), err)
        self.assertGreater(total["lost"], 0, err)
        elapsed = float(re.search(r"in ([\d.]+) s", err)[1])
        warnings = re.findall(r"warning: (\d+) events? lost up to now", err)
        self.assertTrue(1 <= len(warnings) <= elapsed + 2, err)
        self.assertEqual(int(warnings[-1]), total["lost"])
        return total

    def test_a_full_ring(self):
        counted, session = self.flood(300_000, output_format="json")
        total = self.assert_balanced(counted, session)
        hits = sum(entry["type"] == "hit" for entry in self.objects)
        lost = sum(entry["lost"] for entry in self.objects if entry["type"] == "loss")
        self.assertEqual((hits, lost), (total["shown"], total["lost"]))

    def test_nothing_lost(self):
        counted, session = self.flood(2_000, small_ring=False)
        err = session.program.err
        probe = numbers(_PROBE.search(err))
        self.assertEqual((probe["hits"], probe["shown"], probe["lost"]), (counted, counted, 0), err)
        self.assertNotIn("lost up to now", err)

    def test_more_than_was_asked_for(self):
        program = self.counter()
        done = probectl.probectl("attach", "--pid", program.pid, "--count", "5", "-e",
                                 f"p:e/w {target('counter')}:work")
        total, probe = numbers(_SUMMARY.search(done.err)), numbers(_PROBE.search(done.err))
        self.assertEqual((total["shown"], total["lost"]), (5, 0))
        self.assertEqual(probe["shown"] + probe["unwanted"], probe["hits"])


class GoMethods(Case):
    def setUp(self):
        try:
            self.path = target("hello-go")
        except FileNotFoundError:
            self.skipTest("no Go here")

    def test_method_of_a_pointer(self):
        method = f"{self.path}:main.(*tally).Inc"
        with probectl.run([f"p:go/inc {method} by=$arg2:s64", f"r:go/sum {method} n=$retval:s64"],
                          [self.path, "1"]) as session:
            self.assertEqual(session.finish(), 0, session.program.err)
            records = session.records
        entries = [int(r.arguments.split("=")[1]) for r in records if r.event == "inc"]
        sums = [int(r.arguments.split("=")[1]) for r in records if r.event == "sum"]
        self.assertEqual((entries, sums), ([1, 2, 3, 4, 5], [1, 3, 6, 10, 15]))

    def test_explain_tells_what_becomes_of_a_probe(self):
        daemon = self.daemon()
        with Program([self.path, "1", "wait"]) as program:
            program.wait_for("ready")
            names = [json.loads(line)["name"] for line in probectl.probectl(
                "symbols", "--path", self.path, "main.*", "--json").out.splitlines()]
            lines = [f"p:go/f{i} {self.path}:{name}" for i, name in enumerate(names)]
            self.assertGreater(len(lines), 5)
            with probectl.Attached(program.pid, lines, address=daemon.address):
                sites = {site["offset"]: site for site in daemon.settled_sites()}
            for name in names:
                place = json.loads(probectl.probectl("explain", f"{self.path}:{name}",
                                                     "--json").out)
                self.assertEqual(sites[place["offset"]]["mechanism"], place["mechanism"], name)

    def test_statistics_know_it_too(self):
        done = json.loads(probectl.probectl("explain", "--stats", self.path, "--json").out)
        rules = {share["rule"]: share for share in done["shares"]}
        self.assertGreater(rules["goroutine preempted"]["instructions"], 1000)
        self.assertEqual(rules["goroutine preempted"]["mechanism"], "boosted")


class Hints(Case):
    def refused(self, line):
        program = self.counter()
        done = probectl.probectl("attach", "--pid", program.pid, "-e", line)
        self.assertNotEqual(done.code, 0)
        return done.err

    def test_a_place_without_its_file(self):
        path = target("counter")
        self.assertIn(f"did you mean: p:my/w {path}:work n=%di\n",
                      self.refused("p:my/w work n=%di"))
        self.assertIn(f"did you mean: p {path}:work\n", self.refused(f"{path}:work"))
        self.assertIn(f"did you mean: r {path}:work\n", self.refused(f"uretprobe:{path}:work"))

    def test_by_whom_it_is_traced_already(self):
        program = self.counter()
        words = ["attach", "--pid", program.pid, "-e", f"p:e/w {target('counter')}:work"]
        with probectl.Attached(program.pid, [f"p:e/w {target('counter')}:work"]):
            done = probectl.probectl(*words)
            self.assertEqual(done.code, 6, done.err)
            self.assertRegex(done.err, r"is already traced by probed \(pid \d+\)")
            self.assertRegex(done.err, r"one command alone \(pid \d+: \S+/probectl attach")
        daemon = self.daemon()
        self.assertEqual(daemon.run("attach", "--pid", str(program.pid)).code, 0)
        done = probectl.probectl(*words)
        self.assertRegex(done.err, rf"by probed \(pid {daemon.program.pid}\)")
        self.assertIn("let probectl use that daemon", done.err)

    def test_a_probe_that_is_slow(self):
        program = self.counter()
        path = target("counter")
        daemon = self.daemon()
        daemon.optimize("off")
        with probectl.Attached(program.pid, [f"p:e/w {path}:work"],
                               address=daemon.address) as session:
            session.program.wait_for("p:e/w is no jump but a breakpoint", stream="err")
            self.assertEqual(session.detach(), 0)
            self.assertRegex(session.program.err, r"\(boosted\): optimization is off")

    def test_in_which_process_it_is_slow(self):
        programs = [self.counter(), self.counter()]
        daemon = self.daemon()
        daemon.optimize("off")
        with probectl.Attached(programs[0].pid, [f"p:e/w {target('counter')}:work"], "--pid",
                               str(programs[1].pid), address=daemon.address) as session:
            for program in programs:
                session.program.wait_for(f"p:e/w in {program.pid} ({target('counter').name[:15]}) is "
                                         "no jump", stream="err")

    def test_a_breakpoint_that_was_asked_for_is_not_told(self):
        program = self.counter()
        done = probectl.probectl("attach", "--pid", str(program.pid), "--mechanism", "breakpoint",
                                 "-e", f"p:e/w {target('counter')}:work", "--count", "3")
        self.assertEqual(done.code, 0, done.err)
        self.assertNotIn("is no jump", done.err)


_NAMED = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, sys.argv[1].encode())
print("ready", flush=True)
while True:
    if sys.argv[2] == "leave" and "TracerPid:\\t0" not in open("/proc/self/status").read():
        break
    time.sleep(0.001)
"""


class Selections(Case):
    def named(self, what):
        program = self.start(sys.executable, "-c", _NAMED, self.name, what)
        program.wait_for("ready")
        return program

    def setUp(self):
        self.name = f"first-{os.getpid()}"
        self.definition = "p:e/s libc.so.6:clock_nanosleep"

    def test_some_end_meanwhile(self):
        leaving = [self.named("leave") for _ in range(3)]
        staying = self.named("stay")
        done = probectl.probectl("attach", "--name", self.name, "-e", self.definition, "--count",
                                 "100")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn(f"{staying.pid} (", done.err)
        self.assertEqual({r.pid for r in trace.records(done.out)} - {p.pid for p in leaving},
                         {staying.pid})

    def test_those_who_wait_for_us_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            shell = shutil.copy("/bin/bash", Path(folder, self.name))
            script = f"{PROBECTL} attach --exe {shell} -e '{self.definition}'; echo status $?"
            program = self.start(shell, "-c", script, env=probectl.environment())
            self.assertEqual(program.finish(30), 0, program.err)
            self.assertIn("status 5\n", program.out)
            self.assertIn(f"{program.pid} ({self.name}) is left out", program.err)

    def test_daemons_are_left_out(self):
        daemon = self.daemon()
        done = daemon.run("attach", "--exe", str(PROBED), "-e", self.definition)
        self.assertEqual(done.code, 5, done.err)
        self.assertIn("NO_SUCH_PROCESS", done.err)

    def test_whose_line_is_which(self):
        programs = [self.counter(), self.counter()]
        pids = [str(program.pid) for program in programs]
        with probectl.Attached(pids[0], [f"p:e/w {target('counter')}:work"], "--pid",
                               pids[1]) as session:
            session.wait_for_records(100)
            self.assertEqual(session.detach(), 0)
        found = [match["pid"] for match in _PROBE.finditer(session.program.err)]
        self.assertEqual(sorted(found), sorted(pids))


class Shown(Case):
    """What a program has in its strings is obeyed by no terminal."""
    LINE = "p:e/v /usr/bin/bash:bind_variable value=+0(%si):string"
    WORDS = [PROBECTL, "run", "-e", LINE, "--", "/usr/bin/bash", "-c", "x=$'\\e[31mred\\a'"]

    def test_on_a_terminal(self):
        with Terminal(self.WORDS, probectl.environment()) as terminal:
            terminal.expect('value="\\x1b[31mred\\x07"')
            self.assertEqual(terminal.finish(), 0)

    def test_in_a_pipe(self):
        program = self.start(*self.WORDS, env=probectl.environment())
        self.assertEqual(program.finish(30), 0, program.err)
        self.assertIn('value="\033[31mred\a"', program.out)


class Counts(Case):
    def test_targets_count_the_sites_that_are_listed(self):
        daemon = self.daemon()
        program = self.counter()
        path = target("counter")
        self.assertEqual(daemon.run("attach", "--pid", str(program.pid)).code, 0)

        def counts():
            sites = len(daemon.run("sites").out.splitlines())
            told = json.loads(daemon.run("targets", "--json").out)["sites"]
            return sites, told
        self.assertEqual(counts(), (0, 0))
        defined = daemon.run("define", "--pid", str(program.pid), "-e", f"p:e/w {path}:work", "-e",
                             f"r:e/x {path}:work", "-e", f"p:e/m {path}:main")
        self.assertEqual(defined.code, 0, defined.err)
        self.assertEqual(counts(), (3, 3))

    def test_an_orderly_end_is_no_death(self):
        daemon = self.daemon()
        program = self.counter()
        path = target("counter")
        self.assertEqual(daemon.run("attach", "--pid", str(program.pid)).code, 0)
        daemon.run("define", "--pid", str(program.pid), "-e", f"r:e/w {path}:work")
        daemon.program.signal(2)
        self.assertEqual(daemon.program.finish(20), 0)
        wait_until(lambda: "TracerPid:\t0" in Path(f"/proc/{program.pid}/status").read_text(), 10,
                   "it runs free")
        self.assertNotIn("guard", daemon.program.err)


if __name__ == "__main__":
    unittest.main()
