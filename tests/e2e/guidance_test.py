"""What users stumble over: that what is printed can be used, and that errors lead further."""

import json
import re
import shlex
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from first_use_test import Case
from support import elf, probectl
from support.paths import PROBECTL, target
from support.process import Program
from support.wait import wait_until

_OPTIONS = ("filter", "sample_every", "rate_limit", "at_ret", "enabled", "definition", "dialect",
            "max_active", "string_limit", "force", "no_optimization")
# What each makes of the list's JSON.
_SHOWN = {"--max-active": ("max_active", 100000), "--string-limit": ("string_limit", 77),
          "--dialect": ("dialect", "kernel"), "--force": ("force", True), "--sample": ("sample_every", 7),
          "--mechanism": ("no_optimization", True), "--rate": ("rate_limit", 5)}


class Definitions(Case):
    """`list --definitions` and what it says in comments define the same probe again."""

    def setUp(self):
        self.server = self.daemon()
        self.program = self.counter()
        self.ok("attach", "--pid", self.program.pid)

    def ok(self, *words, **more):
        done = self.server.run(*words, **more)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def probes(self):
        return [json.loads(line) for line in self.ok("list", "--json").splitlines()]

    def same_again(self, *options, line="r:e/w {}:work v=$retval"):
        line = line.format(target("counter"))
        self.ok("define", "--pid", self.program.pid, "-e", line, *options)
        text = self.ok("list", "--definitions")
        before, = self.probes()
        for key, value in (_SHOWN[option] for option in options if option in _SHOWN):
            self.assertEqual(before[key], value)
        self.ok("delete", "e/")
        comment = re.match(r"# define (.*)\n", text)
        printed = shlex.split(comment[1]) if comment else []
        self.ok("define", "--pid", self.program.pid, "-f", "-", *printed, stdin=text)
        after, = self.probes()
        self.assertEqual([after[key] for key in _OPTIONS], [before[key] for key in _OPTIONS])
        self.assertEqual(self.ok("list", "--definitions"), text)
        self.ok("delete", "e/")
        return printed

    def test_without_options_there_is_no_comment(self):
        self.assertEqual(self.same_again(), [])

    def test_each_option(self):
        for options in (["--at-ret"], ["--filter", "v > 1 && COMM ~ \"it's*\""],
                        ["--sample", "1/7"], ["--rate", "5/s"], ["--max-active", "100000"],
                        ["--string-limit", "77"], ["--mechanism", "breakpoint"], ["--disabled"],
                        ["--dialect", "kernel"], ["--force"]):
            with self.subTest(options):
                self.assertEqual(self.same_again(*options, line=self.in_all_dialects()), options)

    @staticmethod
    def in_all_dialects():
        return f"r:e/w {{}}:{elf.offset(target('counter'), 'work'):#x} v=$retval"

    def test_together_and_in_the_line(self):
        options = ["--sample", "1/7", "--rate", "5/s", "--disabled"]
        self.assertEqual(self.same_again(*options, line="r9:e/w {}:work"), options)


class Explained(Case):
    def explain(self, place):
        done = probectl.probectl("explain", place)
        self.assertEqual(done.code, 0, done.err)
        return (re.search(r"\n  return probe (.*)\n", done.out)[1],
                re.search(r"\n  --at-ret     (.*)\n", done.out)[1])

    def test_return_probes(self):
        for place, hijack, at_ret in (
                (f"{target('counter')}:work", "return address is replaced", "a breakpoint on 1 ret"),
                ("libc.so.6:_setjmp", "refused: .*RETURNS_TWICE", "refused: .*NEVER_RETURNS"),
                ("libc.so.6:vfork", "refused: .*RETURNS_TWICE", "a breakpoint on . ret"),
                (f"{target('counter')}:work+1", "refused: ", "refused: ")):
            with self.subTest(place):
                told = self.explain(place)
                self.assertRegex(told[0], hijack)
                self.assertRegex(told[1], at_ret)


class AtRet(Case):
    def setUp(self):
        self.server = self.daemon()
        self.program = self.counter()
        self.assertEqual(self.server.run("attach", "--pid", str(self.program.pid)).code, 0)

    def define(self, line, *options):
        return self.server.run("define", "--pid", str(self.program.pid), "-e", line, *options)

    def test_hints_lead_to_nothing_that_is_refused_too(self):
        for options in ([], ["--at-ret"]):
            done = self.define("r:e/w libc.so.6:_setjmp", *options)
            self.assertEqual(done.code, 2)
            self.assertIn("  try: probe its entry instead\n", done.err)

    def test_the_answer_knows_that_it_stays_a_breakpoint(self):
        for name, options, reason in (
                ("at", ["--at-ret"], "it stands on a ret instruction"),
                ("best", ["--mechanism", "breakpoint"], "not to be optimized")):
            done = self.define(f"r:e/{name} {target('counter')}:work", *options)
            self.assertIn(reason, done.out, done.err)
            self.assertNotIn("it becomes a jump", done.out)

    def test_there_is_nothing_for_a_limit_to_count(self):
        for line, options in (("r:e/w {}:work", ["--max-active", "3"]), ("r3:e/w {}:work", [])):
            done = self.define(line.format(target("counter")), "--at-ret", *options)
            self.assertEqual(done.code, 2, done.out)
            self.assertRegex(done.err, r"  why: NO_MAX_ACTIVE_AT_RET \(")


class Nothing(Case):
    def test_a_definition_of_nothing(self):
        server = self.daemon()
        program = self.counter()
        self.assertEqual(server.run("attach", "--pid", str(program.pid)).code, 0)
        done = server.run("define", "--pid", str(program.pid))
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("why: NOTHING_DEFINED", done.err)
        # What a script has saved may be empty.
        self.assertEqual(server.run("define", "--pid", str(program.pid), "-f", "-", stdin="").code,
                         0)

    def test_a_bare_name_of_the_program_that_is_run(self):
        path = target("counter")
        done = probectl.probectl("run", "-e", f"p:e/w {path.name}:work", "--", str(path), "1")
        self.assertEqual(done.code, 5, done.err)
        self.assertIn(f"  did you mean: p:e/w {path}:work\n", done.err)


class Try(Case):
    """Every one of these errors says what to try."""

    def test_places(self):
        for words in (["explain", "--stats", "/nonexistent"], ["symbols", "--path", "/nonexistent"]):
            self.assertRegex(probectl.probectl(*words).err, r"\n  try: .")
        for place in ("", "/nonexistent:x", "nonexistent:x", "0x12",
                      f"{target('counter')}:0xfffffff"):
            with self.subTest(place):
                done = probectl.probectl("explain", place)
                self.assertNotEqual(done.code, 0)
                self.assertRegex(done.err, r"\n  try: .")

    def test_an_offset_that_is_no_address(self):
        program = self.counter()
        done = probectl.probectl("attach", "--pid", str(program.pid), "-e",
                                 f"p:e/w {target('counter')}:0x0")
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("try: 'probectl symbols --path ", done.err)

    def test_init(self):
        server = self.daemon()
        for words in (["attach", "--pid", "1"], ["detach", "--pid", "1"],
                      ["explain", "--pid", "1", "/bin/sh:0x10"]):
            with self.subTest(words):
                done = server.run(*words)
                self.assertNotEqual(done.code, 0)
                self.assertRegex(done.err, r"\n  try: .")
                self.assertNotIn("attach --pid 1", done.err)

    def test_a_zombie(self):
        with Program(["/bin/true"]) as dead:
            wait_until(lambda: _state(dead.pid) == "Z", 20, "its end")
            done = probectl.probectl("attach", "--pid", str(dead.pid), "-e", "p:e/w libc.so.6:read")
        self.assertIn("why: ZOMBIE", done.err)
        self.assertRegex(done.err, r"\n  try: .")

    def test_a_library_that_is_loaded_later(self):
        done = probectl.probectl("run", "-e", "p:e/w libno-such.so:f", "--", "/bin/true")
        self.assertEqual(done.code, 5, done.err)
        self.assertIn("named by its whole path", done.err)
        self.assertNotIn("--pid", done.err)


def _state(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


class SlowReader(Case):
    def test_it_is_told_that_the_rest_is_still_written(self):
        program = self.start(target("threads"), "2", "100000000", "wait")
        program.wait_for("ready")
        log = tempfile.NamedTemporaryFile("r", prefix="probed-test-")
        self.addCleanup(log.close)
        session = subprocess.Popen(
            [PROBECTL, "attach", "--pid", str(program.pid), "--duration", "1", "-e",
             f"p:f/step {target('threads')}:step"], env=probectl.environment(),
            stdout=subprocess.PIPE, stderr=log.fileno())
        self.addCleanup(session.stdout.close)
        self.addCleanup(session.wait)
        self.addCleanup(session.kill)

        def said():
            return Path(log.name).read_text("utf-8")
        wait_until(lambda: "attached to" in said(), 20, "it is attached")
        program.say("\n")
        wait_until(lambda: "Ctrl-C gives up the rest" in said(), 20, "it is told")
        session.send_signal(signal.SIGINT)
        self.assertEqual(session.wait(20), 130)


class Together(Case):
    """Two clients at one group."""

    def test_deletions_meet(self):
        server = self.daemon()
        program = self.counter()
        self.assertEqual(server.run("attach", "--pid", str(program.pid)).code, 0)
        lines = "".join(f"p:g/e{i} {target('counter')}:work\n" for i in range(200))
        for _ in range(3):
            done = server.run("define", "--pid", str(program.pid), "-f", "-", stdin=lines)
            self.assertEqual(done.code, 0, done.err)
            env = probectl.environment() | {"PROBED_ADDRESS": server.address}
            clients = [self.start(PROBECTL, "delete", selector, env=env)
                       for selector in ("g/", "g/e7", "g/e8", "g/")]
            codes = [client.finish(60) for client in clients]
            said = "".join(client.err for client in clients)
            self.assertIn(0, codes)
            self.assertLessEqual(set(codes), {0, 5}, said)
            self.assertNotRegex(said, r"probes/\d|probe \d")
            self.assertEqual(server.run("list").out, "")


class Numbers(Case):
    def test_detach_counts_the_sites_that_were_listed(self):
        server = self.daemon()
        program = self.counter()
        path = target("counter")
        self.assertEqual(server.run("attach", "--pid", str(program.pid)).code, 0)
        server.run("define", "--pid", str(program.pid), "-e", f"p:e/w {path}:work", "-e",
                   f"r:e/x {path}:work", "-e", f"p:e/m {path}:main")
        sites = len(server.run("sites").out.splitlines())
        done = server.run("detach", "--pid", str(program.pid))
        self.assertRegex(done.err, rf": {sites} sites restored, ")

    def test_a_profile_has_no_mechanism_of_what_stands_nowhere(self):
        server = self.daemon()
        program = self.counter()
        self.assertEqual(server.run("attach", "--pid", str(program.pid)).code, 0)
        done = server.run("define", "--pid", str(program.pid), "-e",
                          f"p:e/w {target('plugin')}:plugin_work")
        self.assertEqual(done.code, 0, done.err)
        self.assertRegex(server.run("profile").out, r" pending\n$")


if __name__ == "__main__":
    unittest.main()
