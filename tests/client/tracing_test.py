"""run and attach with the real daemon: exit statuses, interrupts, readers that go away, SIGKILL."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import elf, maps, probectl, trace
from support.daemon import Daemon
from support.paths import PROBECTL, target
from support.process import Program, is_running_free, status
from support.wait import wait_until

NOBODY = 65534
SUMMARY = r"probectl: \d+ events? in \d+\.\d s, 0 lost, \d+ probes?"


class Run(unittest.TestCase):
    def test_true(self):
        result = probectl.probectl("run", "--", "true")
        self.assertEqual((result.code, result.out), (0, ""), result.err)
        self.assertRegex(result.err, SUMMARY)

    def test_status_of_a_script_and_its_children(self):
        result = probectl.probectl(
            "run", "-q", "-e", "p:e/main /usr/bin/bash:main argc=%di:s32", "--", "bash", "-c",
            "bash -c 'exit 3'; exit $(($? + 34))")
        self.assertEqual(result.code, 37, result.err)
        texts = [record.arguments for record in trace.records(result.out)]
        self.assertEqual(texts, ["argc=3", "argc=3"])
        self.assertEqual(result.err, "")

    def test_commands_that_cannot_run(self):
        missing = probectl.probectl("run", "--", "no-such-command-here")
        self.assertEqual(missing.code, 127, missing.err)
        self.assertRegex(missing.err, "^probectl: error: cannot run no-such-command-here: ")
        unusable = probectl.probectl("run", "--", "/etc/passwd")
        self.assertEqual(unusable.code, 126, unusable.err)
        for result in (missing, unusable):
            self.assertNotIn("events in", result.err, "nothing ran")

    def test_refused_definition_runs_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            result = probectl.probectl("run", "-e", "p:e/x /bin/bash:main %zz", "--", "touch",
                                       f"{folder}/ran")
            self.assertEqual(result.code, 2, result.err)
            self.assertEqual(os.listdir(folder), [])
            self.assertRegex(result.err, r"Invalid register name.*\n  Command: p:e/x .*\n +\^\n")

    def test_definition_that_never_armed_is_told(self):
        for place in ("/usr/bin/bash:main", "libcrypto.so.3:EVP_sha256"):  # which probectl maps
            with self.subTest(place):
                result = probectl.probectl("run", "-e", f"p:e/x {place}", "--", "true")
                self.assertEqual(result.code, 0, result.err)
                self.assertRegex(result.err, r"e/x  hits 0 .*never armed")

    def test_a_program_is_found_where_a_directory_has_its_name(self):
        result = probectl.probectl("run", "-e", "p:e/x python3:Py_BytesMain", "--",
                                   "/usr/bin/python3", "-c", "")
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.err, r"e/x  hits 1  shown 1 ")

    def test_signal_sent_to_us_is_passed_on(self):
        with Program([PROBECTL, "run", "--", "sleep", "60"],
                     env=probectl.environment()) as program:
            wait_until(lambda: b"sleep" in self.commands_of(program.pid), 20)
            program.signal(signal.SIGTERM)
            self.assertEqual(program.finish(20), 128 + signal.SIGTERM, program.err)
            self.assertRegex(program.err, SUMMARY)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_counters_of_a_command_that_a_signal_has_ended(self):
        """Without privileges: what has ended is nobody's in /proc, but still ours."""
        words = [PROBECTL, "run", "-e", f"p:e/w {target('counter')}:work", "-o", "/dev/null", "--",
                 target("counter")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=probectl.environment(), text=True,
                              user=NOBODY, group=NOBODY, extra_groups=[]) as session:
            self.assertEqual(session.stdout.readline(), "ready\n")
            session.send_signal(signal.SIGTERM)
            session.wait(30)  # its input stays open: the signal is what ends it
            err = session.stderr.read()
            self.assertEqual(session.returncode, 128 + signal.SIGTERM, err)
            self.assertNotIn("error:", err)
            hits, shown = re.search(r"p:e/w  hits (\d+)  shown (\d+)  missed 0  lost 0$", err,
                                    re.M).groups()
            self.assertEqual(hits, shown)

    @staticmethod
    def commands_of(pid):
        """The first words of a process's children."""
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0] for child in children]


class ClosedStreams(unittest.TestCase):
    def test_without_standard_output(self):
        """No descriptor of ours may become the program's standard output."""
        result = subprocess.run(
            ["sh", "-c", f"exec {PROBECTL} run -e 'p:e/main /usr/bin/bash:main' -- bash -c : >&-"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=30, check=False,
            env=probectl.environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"1 event .*\n.*hits 1 ")


class Files(unittest.TestCase):
    """Questions about a file need no daemon that somebody started."""

    def test_explain(self):
        result = probectl.probectl("explain", "--json", "/usr/bin/bash:readline")
        self.assertEqual(result.code, 0, result.err)
        place = json.loads(result.out)
        self.assertEqual((place["symbol"], place["mechanism"]), ("readline+0x0", "optimized"))
        truth = elf.load("/usr/bin/bash").symbols["readline"]
        self.assertEqual((place["offset"], place["function_size"]), (truth.offset, truth.size))

    def test_a_suggestion_is_made_once(self):
        result = probectl.probectl("explain", "/usr/bin/bash:raedline")
        self.assertEqual(result.code, 5, result.err)
        self.assertEqual(result.err.count("did you mean"), 1, result.err)
        self.assertRegex(result.err, r"(?m)^  did you mean: .*\breadline\b")

    def test_symbols(self):
        result = probectl.probectl("symbols", "--path", "/usr/bin/bash", "readline")
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"/usr/bin/bash:0x[0-9a-f]+ .*readline")

    def test_symbols_that_are_not_there(self):
        for pattern, suggestion in (("raedline", "readline"), ("readlin", "readline"),
                                    ("*nothing*at*all*", None)):
            with self.subTest(pattern):
                result = probectl.probectl("symbols", "--json", "--path", "/usr/bin/bash", pattern)
                self.assertEqual((result.code, result.out), (5, ""), result.err)
                self.assertIn(pattern, result.err)
                if suggestion:
                    self.assertRegex(result.err, rf"(?m)^  did you mean: .*\b{suggestion}\b")


class Attach(unittest.TestCase):
    def setUp(self):
        self.path = target("counter")
        self.program = Program([self.path])
        self.addCleanup(self.program.__exit__)
        self.program.wait_for("ready")
        self.site = maps.load_base(self.program.pid, self.path) + elf.load(
            str(self.path)).symbols["work"].address
        self.definition = f"p:e/w {self.path}:work n=%di:u64"

    def assert_unharmed(self):
        wait_until(lambda: is_running_free(self.program.pid), 10, "the target runs free")
        self.assertEqual(maps.changed_text(self.program.pid), [])
        self.assertEqual(self.program.finish(10), 0)
        self.assertRegex(self.program.out, r"calls \d+ wrong 0\n$")

    def test_interrupt_detaches_and_reports(self):
        with probectl.Attached(self.program.pid, [self.definition], armed=self.site) as session:
            count = 20
            session.wait_for_records(count)
            self.assertEqual(session.detach(), 0, session.program.err)
            told = int(re.search(r"(\d+) events in", session.program.err)[1])
            self.assertEqual(told, len(session.records))
            self.assertGreaterEqual(told, count)
            self.assertRegex(session.program.err, SUMMARY + r"\n.*p:e/w  hits \d+  shown \d+  missed 0  lost 0")
        self.assert_unharmed()

    def test_count_is_exact_in_both_formats(self):
        for output_format in ("trace", "json"):
            with self.subTest(output_format):
                result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e",
                                           self.definition, "--count", "7", "--format",
                                           output_format)
                self.assertEqual(result.code, 0, result.err)
                if output_format == "trace":
                    self.assertEqual(len(trace.records(result.out)), 7)
                else:
                    objects = [json.loads(line) for line in result.out.splitlines()]
                    hits = [one for one in objects if one["type"] == "hit"]
                    numbers = [one["args"]["n"] for one in hits]
                    self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 7)))
        self.assert_unharmed()

    def rename(self):
        """The program as a file whose name no other process has."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return shutil.copy(self.path, Path(folder.name, f"only-{os.getpid()}"))

    def test_by_name(self):
        path = self.rename()
        definition = f"p:e/w {path}:work n=%di:u64"
        with Program([path]) as program:
            program.wait_for("ready")
            for selection in (["--name", Path(path).name], ["--exe", path],
                              ["--name", "only-*", "--exe", path, "--user", str(os.geteuid())]):
                result = probectl.probectl("attach", *selection, "-e", definition, "--count", "3")
                self.assertEqual(result.code, 0, result.err)
                self.assertIn(f"attached to {program.pid} (", result.err)
                self.assertEqual(len(trace.records(result.out)), 3)

    def test_a_path_with_blanks(self):
        """Octal in a definition, whatever the working directory is called; read back the same."""
        with tempfile.TemporaryDirectory(prefix="my dir ") as folder:
            path = shutil.copy(self.path, Path(folder, "a prog"))
            definition = r"p:e/w ./a\040prog:work n=%di:u64"
            with Program([path]) as program, Daemon() as daemon:
                program.wait_for("ready")
                words = [PROBECTL, "attach", "--pid", str(program.pid), "--address", daemon.address]
                done = subprocess.run([*words, "-e", definition, "--count", "3"], cwd=folder,
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(trace.records(done.stdout)), 3)
                typed = subprocess.run([*words, "-e", definition.replace(r"\040", " ")], cwd=folder,
                                       capture_output=True, text=True, timeout=60, check=False)
                self.assertIn(f"did you mean: {definition}\n", typed.stderr)
                absolute = definition.replace("./", folder.replace(" ", r"\040") + "/")
                daemon.run("attach", "--pid", str(program.pid))
                daemon.run("define", "--pid", str(program.pid), "-e", absolute)
                lines = daemon.run("list", "--definitions").out
                self.assertIn(absolute.split(":work")[0] + ":0x", lines)
                self.assertEqual(daemon.run("delete", "--", "-:" + lines[2:].strip()).code, 0)
                self.assertEqual(daemon.run("define", "--pid", str(program.pid), "-f", "-",
                                            stdin=lines).code, 0)
                self.assertEqual(daemon.run("list", "--definitions").out, lines)

    def test_waits_for_a_program_to_start(self):
        path = self.rename()
        with Program([PROBECTL, "attach", "--exe", path, "--wait", "--address", "private", "-e",
                      f"p:e/w {path}:work n=%di:u64", "--count", "5"]) as waiting:
            wait_until(lambda: "waiting for a process that has --exe" in waiting.err, 20, "it waits")
            with Program([path]) as program:
                program.wait_for("ready")
                self.assertEqual(waiting.finish(20, close_input=False), 0, waiting.err)
                self.assertIn(f"attached to {program.pid} (", waiting.err)
                self.assertEqual(len(trace.records(waiting.out)), 5)

    def test_refused_selections(self):
        for words, code, text in (
                ([], 2, "no process is named"),
                (["--pid", "1", "--name", "x"], 2, "--name"),
                (["--name", "no program is called so"], 5, "no process that you may trace has"),
                (["--exe", "./relative"], 5, "no process that you may trace has --exe ./relative"),
                (["--user", "nobody-has-this-name"], 2, "no user"),
                (["--pid", str(self.program.pid), "--wait"], 2, "--wait")):
            with self.subTest(words):
                result = probectl.probectl("attach", *words, "-e", self.definition)
                self.assertEqual(result.code, code, result.err)
                self.assertIn(text, result.err)

    def test_filter(self):
        result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e", self.definition,
                                   "--filter", "n & 1 && COMM ~ 'counter*'", "--count", "7")
        self.assertEqual(result.code, 0, result.err)
        numbers = [int(record.arguments[2:]) for record in trace.records(result.out)]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 14, 2)))
        self.assertEqual(numbers[0] % 2, 1)
        self.assertRegex(result.err, r"hits \d+  shown 7  missed 0  lost 0  filtered [1-9]")
        self.assert_unharmed()

    def test_sampling(self):
        result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e", self.definition,
                                   "--filter", "n & 1", "--sample", "1/5", "--count", "6")
        self.assertEqual(result.code, 0, result.err)
        numbers = [int(record.arguments[2:]) for record in trace.records(result.out)]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 60, 10)))
        self.assertRegex(result.err, r"filtered [1-9]\d*  sampled out [1-9]")
        self.assert_unharmed()

    def test_rate(self):
        result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e", self.definition,
                                   "--rate", "2/s", "--count", "9")
        self.assertEqual(result.code, 0, result.err)
        times = [float(record.time) for record in trace.records(result.out)]
        self.assertEqual(len(times), 9)
        # Twice as many in the second in which the site becomes a jump: counting starts anew.
        self.assertGreater(times[8] - times[0], 0.99)
        self.assert_unharmed()

    def test_refused_sampling(self):
        for option in (("--sample", "0"), ("--sample", "1/0"), ("--sample", "2/3"),
                       ("--rate", "1/m"), ("--rate", "-1"), ("--rate", "4294967296")):
            with self.subTest(option):
                result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e",
                                           self.definition, *option)
                self.assertEqual(result.code, 2, result.err)
                self.assertIn(option[1], result.err)

    def test_refused_filter(self):
        result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e", self.definition,
                                   "--filter", "n ==")
        self.assertEqual(result.code, 2, result.err)
        self.assertRegex(result.err, r"filter: Invalid value \(did you forget quotes\)\?"
                                     r"\n  Command: n ==\n {16}\^\n"
                                     r"(  .*\n)*  why: INVALID_VALUE \(errno=22\)\n")
        self.assert_unharmed()

    def test_reader_that_goes_away_ends_it(self):
        words = [PROBECTL, "attach", "--pid", str(self.program.pid), "-e", self.definition]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=probectl.environment(), text=True) as session:
            self.assertIn("w: (0x", session.stdout.readline())
            session.stdout.close()
            self.assertEqual(session.wait(20), 0, session.stderr.read())
        self.assert_unharmed()

    def test_a_pid_that_is_named_twice_is_one(self):
        pid = self.program.pid
        result = probectl.probectl("attach", "--pid", f"{pid},{pid}", "-e", self.definition,
                                   "--count", "3")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn(", 1 probe\n", result.err)
        self.assert_unharmed()

    def test_the_summary_tells_of_a_deleted_probe(self):
        with Daemon() as daemon:
            with probectl.Attached(self.program.pid, [self.definition, f"p:e/x {self.path}:main"],
                                   address=daemon.address) as session:
                session.wait_for_records(5)
                self.assertEqual(daemon.run("delete", "e/w").code, 0)
                self.assertEqual(session.detach(), 0)
                shown = len(session.records)
                self.assertIn(f"p:e/w  shown {shown}  (deleted meanwhile", session.program.err)
                self.assertIn("p:e/x  hits 0  shown 0 ", session.program.err)
        self.assert_unharmed()

    def test_what_is_listed_after_a_detach(self):
        with Daemon() as daemon:
            pid = str(self.program.pid)
            target = daemon.run("attach", "--pid", pid).out.strip()
            daemon.run("define", "--pid", pid, "-e", self.definition, "-e",
                       f"p:e/other {self.path}:main")
            self.assertEqual(len(daemon.run("list").out.splitlines()), 2)
            self.assertIn("NOT_IN_KERNEL", daemon.run("trigger", "e/w").err)
            self.assertEqual(daemon.run("detach", "--pid", pid).code, 0)
            self.assertEqual(daemon.run("list").out, "")
            gone = daemon.run("list", "--target", target).out.splitlines()
            self.assertEqual(len(gone), 2)
            for line in gone:
                self.assertRegex(line, r"  gone  .*\(the process was detached\)$")
            self.assertIn("w", daemon.run("profile").out, "the last counters")
        self.assert_unharmed()

    def test_the_reason_is_that_of_the_probes_that_are_there(self):
        """One that was filtered by COMM can be no jump; another, after it, can."""
        with Daemon() as daemon:
            pid = str(self.program.pid)
            daemon.run("attach", "--pid", pid)
            define = ("define", "--pid", pid, "-e")
            daemon.run(*define, self.definition, "--filter", "COMM == 'x'")
            daemon.settled_sites()
            self.assertIn("COMM needs the daemon", daemon.run("list").out)
            second = daemon.run(*define, self.definition.replace("e/w", "e/x")).out
            self.assertNotIn("COMM", second)
            daemon.settled_sites()
            for line in daemon.run("list").out.splitlines():
                self.assertIn("so for all 2 probes", line)
            self.assertEqual(daemon.run("delete", "e/w").code, 0)
            daemon.run(*define, self.definition.replace("e/w", "e/y"))
            daemon.settled_sites()
            self.assertNotIn("COMM", daemon.run("list").out)
        self.assert_unharmed()

    def test_one_request_to_end_that_comes_twice(self):
        """As timeout(1) sends it: to the process, and to its process group."""
        words = [PROBECTL, "attach", "--pid", str(self.program.pid), "-e", self.definition, "-o",
                 "/dev/null"]
        done = subprocess.run(["timeout", "2", *words], env=probectl.environment(), text=True,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertRegex(done.stderr, SUMMARY)
        self.assertIn(f"detached from {self.program.pid}", done.stderr)
        self.assert_unharmed()

    def test_definitions_that_define_nothing(self):
        for words in (["-e", ""], ["-e", "# nothing"], ["-f", "/dev/null"]):
            with self.subTest(words):
                result = probectl.probectl("attach", "--pid", str(self.program.pid), *words)
                self.assertEqual(result.code, 2, result.err)
                self.assertIn("NOTHING_DEFINED", result.err)
        self.assert_unharmed()

    def test_killed_client_leaves_nothing(self):
        with probectl.Attached(self.program.pid, [self.definition], armed=self.site) as session:
            session.wait_for_records(20)
            session.program.signal(signal.SIGKILL)
            session.program.finish(10, close_input=False)
        self.assert_unharmed()

    def test_target_that_ends_ends_it(self):
        with probectl.Attached(self.program.pid, [self.definition], armed=self.site) as session:
            session.wait_for_records(5)
            self.assertEqual(self.program.finish(10), 0)
            self.assertEqual(session.finish(20), 0, session.program.err)
            self.assertRegex(session.program.err, r"\d+ \(counter.*\) ended")

    def test_one_of_two_targets_is_partial(self):
        free = int(Path("/proc/sys/kernel/pid_max").read_text()) - 7
        result = probectl.probectl("attach", "--pid", f"{self.program.pid},{free}", "-e",
                                   self.definition, "--count", "3")
        self.assertEqual(result.code, 7, result.err)
        self.assertEqual(len(trace.records(result.out)), 3)
        self.assert_unharmed()

    def test_full_disk_is_told(self):
        result = probectl.probectl("attach", "--pid", str(self.program.pid), "-e", self.definition,
                                   "-o", "/dev/full")
        self.assertEqual(result.code, 1, result.err)
        self.assertIn("No space left", result.err)
        self.assert_unharmed()

    def test_private_daemon_goes_with_us(self):
        with probectl.Attached(self.program.pid, [self.definition], armed=self.site) as session:
            daemon = int(status(self.program.pid, "TracerPid"))
            self.assertNotEqual(daemon, session.program.pid)
            self.assertEqual(session.detach(), 0, session.program.err)
            self.assertFalse(Path(f"/proc/{daemon}").exists())
        self.assert_unharmed()


if __name__ == "__main__":
    unittest.main()
