"""Exit codes by the table, and what a wrong command line is told."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.daemon import Daemon
from support.paths import PROBECTL
from support.probectl import environment, probectl

OK, FAILURE, USAGE, CONNECT, PERMISSION, NOT_FOUND = 0, 1, 2, 3, 4, 5
NOBODY = 65534


class ExitCodes(unittest.TestCase):
    def expect(self, code, *words, pattern="(?s).*", **more):
        result = probectl(*words, **more)
        self.assertEqual(result.code, code, result.err)
        self.assertRegex(result.err, pattern)
        return result

    def test_usage(self):
        for words in ([], ["frobnicate"], ["attach"], ["attach", "--pid", "x", "-e", "p x:1"],
                      ["run"], ["run", "--"], ["watch", "--format", "xml"],
                      ["check", "--dialect", "klingon"], ["delete"], ["delete", "--bogus"],
                      ["list", "--pid", "1", "--target", "targets/1-1"], ["detach"],
                      ["watch", "--count", "-1"], ["completion", "tcsh"]):
            with self.subTest(words):
                self.assertTrue(self.expect(USAGE, *words).err)

    def test_near_words_are_suggested(self):
        for words, suggestion in ((["atach"], "attach"), (["det"], "detach"), (["lst"], "list"),
                                  (["attach", "--pdi", "1", "-e", "p x:1"], "--pid"),
                                  (["watch", "--formt=json"], "--format"),
                                  (["detach", "--al"], "--all"),
                                  (["--versoin"], "--version")):
            with self.subTest(words):
                self.expect(USAGE, *words, pattern=rf"(?m)^  did you mean: {suggestion}$")
        self.assertNotIn("did you mean", self.expect(USAGE, "frobnicate").err)
        self.assertNotIn("did you mean", self.expect(USAGE, "list", "--frobnicate").err)

    def test_options_follow_the_verb(self):
        result = self.expect(USAGE, "--timeout", "9", "explain", "--stats", "/bin/true",
                             pattern="options follow the verb")
        self.assertNotIn("did you mean", result.err)

    def test_words_of_a_choice_are_listed(self):
        self.expect(USAGE, "watch", "--format", "xml", pattern="json, trace")

    def test_what_is_missing_is_named(self):
        for words, text in ((["detach"], "(?s)which target.*--pid PID"),
                            (["explain"], "explain needs a PLACE: PATH:0xOFFSET"),
                            (["detach", "--pid"], r"--pid needs a value: PID\[,PID\]"),
                            (["watch", "--count", "1.5"], "1.5 is not a number from 1 to"),
                            (["watch", "--queue-bytes", "x"], "x is not a number from 1 to"),
                            (["attach", "--pid", "99999999999"], "99999999999 is not a number"),
                            (["kernel", "foo"], "foo is not one of list, blacklist"),
                            (["attach", "-p", "1", "p:x /bin/x:main"], "try: -e 'p:x /bin/x:main'"),
                            (["list", "12"], "try: --pid 12"),
                            (["attach", "--pid", "-e", "p:x /bin/x:main"],
                             r"(?s)--pid needs a value: PID\[,PID\], and what follows is -e.*pidof"),
                            (["watch", "-o", "--count", "3"], "-o needs a value: FILE"),
                            (["attach", "--pid", "", "-e", "p x:1"], 'a pid is missing in ""'),
                            (["detach", "--pid", "123,"], 'a pid is missing in "123,"'),
                            (["detach", "--pid", "1,,2"], 'a pid is missing in "1,,2"'),
                            (["detach", "--pid", "1 x"], "x is not a number from 1 to .*'pidof x' tells"),
                            (["watch", "--duration", "inf"], "inf is not a positive number"),
                            (["list", "--timeout", "inf"], "inf is not a positive number"),
                            (["run", "ls", "-l"], r"try: probectl run .* -- ls -l"),
                            (["run", "-e", "p /bin/x:1", "ls"], r"try: probectl run .* -- ls$")):
            with self.subTest(words):
                err = self.expect(USAGE, *words, pattern=text).err
                self.assertNotRegex(err, "required|Could not convert|Exactly|POSITIVE")

    def test_pids_as_pidof_prints_them(self):
        for words in (["--pid", "999999998", "999999999"], ["-p", "999999998 999999999\n"],
                      ["--pid", "999999998, 999999999"], ["-p", "999999998", "-p", "999999999"]):
            with self.subTest(words), Daemon() as daemon:
                err = daemon.run("detach", *words).err
                self.assertIn("process 999999998 is not attached", err)
                self.assertIn("process 999999999 is not attached", err)

    def test_help_and_version(self):
        self.assertIn("attach", self.expect(OK, "--help").out)
        self.assertRegex(self.expect(OK, "--version").out, r"^probectl \d+\.\d+\.\d+\n$")

    def test_no_daemon(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"unix://{folder}/none.sock"
            for words in (["list"], ["targets"], ["watch"], ["status"], ["status", "-q"],
                          ["attach", "--pid", "1", "-e", "p /bin/sh:1"],
                          ["run", "-e", "p /bin/sh:1", "--", "true"]):
                with self.subTest(words):
                    self.expect(CONNECT, *words, address=address, pattern="none.sock")
                    self.expect(CONNECT, *words[:1], "--address", address, *words[1:],
                                pattern="try: ")

    def test_stale_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/stale"
            socket.socket(socket.AF_UNIX).bind(path)
            self.expect(CONNECT, "list", address=f"unix://{path}", pattern="refused")

    def test_bad_address(self):
        self.expect(USAGE, "list", "--address", "nonsense", pattern="BAD_ADDRESS")
        self.expect(USAGE, "list", "--address", "tcp://localhost:1", pattern="TLS_REQUIRED")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_socket_of_others(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{folder}/s")
            os.chmod(f"{folder}/s", 0o600)
            listener.listen()
            done = subprocess.run([PROBECTL, "list", "--address", f"unix://{folder}/s"], user=NOBODY,
                                  group=NOBODY, extra_groups=[], capture_output=True, text=True,
                                  timeout=30, env=environment(), check=False)
            self.assertEqual(done.returncode, PERMISSION, done.stderr)
            self.assertIn("SOCKET_PERMISSION", done.stderr)
            self.assertIn("--address private", done.stderr)

    def test_file_not_found(self):
        self.expect(NOT_FOUND, "check", "/nonexistent", pattern="/nonexistent")
        self.expect(NOT_FOUND, "run", "-f", "/nonexistent", "--", "true", pattern="/nonexistent")

    def test_definitions_that_the_api_cannot_carry(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"p:g\xe9/a /bin/sh:0x10\n")
            file.flush()
            self.expect(USAGE, "run", "-f", file.name, "--", "true", pattern="NOT_UTF8")

    def test_output_that_cannot_be_opened(self):
        self.expect(FAILURE, "check", "-o", "/", stdin="")

    def test_color(self):
        address = "unix:///nonexistent"
        always = probectl("list", "--color", "always", address=address)
        self.assertIn("\033[31m", always.err)
        for words in (["list"], ["list", "--color", "never"]):
            self.assertNotIn("\033", probectl(*words, address=address).err)


class Completion(unittest.TestCase):
    def complete(self, *words):
        script = (f"source <({PROBECTL} completion bash); COMP_WORDS=({' '.join(words)}); "
                  f"COMP_CWORD={len(words) - 1}; _probectl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30,
                              check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_verbs_options_and_words(self):
        self.assertEqual(self.complete("probectl", "att"), ["attach"])
        self.assertEqual(self.complete("probectl", "run", "--dia"), ["--dialect"])
        self.assertEqual(self.complete("probectl", "run", "--dialect", "k"), ["kernel"])
        self.assertIn(str(os.getpid()), self.complete("probectl", "attach", "--pid", "''"))


class Search(unittest.TestCase):
    """Where the private daemon is looked for."""

    def setUp(self):
        if os.path.exists("/run/probed/probed.sock"):
            self.skipTest("a daemon is installed here")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.home = Path(self.folder.name)
        (self.home / "bin").mkdir()
        (self.home / "path").mkdir()
        shutil.copy(PROBECTL, self.home / "bin/probectl")

    def fake_daemon(self, where):
        """Writes its arguments down and ends."""
        path = self.home / where / "probed"
        path.write_text(f"#!/bin/sh\necho \"$0 $*\" > {self.home}/started\necho no thanks\n")
        path.chmod(0o755)

    def run_probectl(self, *words, **env):
        return subprocess.run([self.home / "bin/probectl", *words], capture_output=True, text=True,
                              timeout=60, check=False,
                              env={**environment(), "PATH": f"{self.home}/path:/usr/bin:/bin", **env})

    def started(self):
        path = self.home / "started"
        return path.read_text() if path.exists() else ""

    def test_none(self):
        done = self.run_probectl("run", "--", "true", PATH=f"{self.home}/path")
        self.assertEqual(done.returncode, CONNECT, done.stderr)
        self.assertIn("DAEMON_NOT_FOUND", done.stderr)

    def test_beside_us_first(self):
        self.fake_daemon("bin")
        self.fake_daemon("path")
        done = self.run_probectl("run", "--", "true")
        self.assertRegex(self.started(), rf"^{self.home}/bin/probed --private-fd \d+\n$")
        self.assertEqual(done.returncode, CONNECT, done.stderr)
        self.assertIn("no thanks", done.stderr)  # its last words are shown

    def test_then_on_path(self):
        self.fake_daemon("path")
        self.run_probectl("attach", "--pid", str(os.getpid()), "-e", "p /bin/sh:0x10")
        self.assertRegex(self.started(), rf"^{self.home}/path/probed --private-fd \d+\n$")

    def test_never_for_other_verbs_or_a_named_address(self):
        self.fake_daemon("bin")
        for words in (["list"], ["watch"], ["status"],
                      ["run", "--address", "unix:///nonexistent", "--", "true"]):
            self.assertEqual(self.run_probectl(*words).returncode, CONNECT)
        self.assertEqual(self.run_probectl("run", "--", "true",
                                           PROBED_ADDRESS="unix:///nonexistent").returncode, CONNECT)
        self.assertEqual(self.started(), "")

    def test_private_on_request(self):
        self.fake_daemon("bin")
        self.run_probectl("status", "--address", "private")
        self.assertRegex(self.started(), rf"^{self.home}/bin/probed --private-fd \d+\n$")

    def test_private_is_refused_where_it_would_know_nothing(self):
        self.fake_daemon("bin")
        for words in (["optimization", "off"], ["list"], ["targets"], ["sites"], ["profile"],
                      ["watch"], ["define", "--pid", "1", "-e", "p /bin/sh:1"], ["enable", "a"],
                      ["disable", "a"], ["delete", "a"], ["filter", "a", "b"], ["trigger", "a"],
                      ["format", "a"],
                      ["detach", "--all"], ["attach", "--pid", "1"]):
            with self.subTest(words):
                done = self.run_probectl(*words, "--address", "private")
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertIn("PRIVATE_DAEMON_IS_NEW", done.stderr)
        self.assertEqual(self.started(), "")

    def test_command_never_runs_without_its_probes(self):
        self.fake_daemon("bin")
        self.run_probectl("run", "-e", "p /bin/sh:0x10", "--", "touch", f"{self.home}/ran")
        self.assertFalse((self.home / "ran").exists())


class Json(unittest.TestCase):
    def test_check_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            result = probectl("check", "-o", f"{folder}/out", stdin="p /bin/sh:0x10\n")
            self.assertEqual((result.code, result.out), (OK, ""))
            self.assertTrue(json.loads(Path(f"{folder}/out").read_text())["ok"])


if __name__ == "__main__":
    unittest.main()
