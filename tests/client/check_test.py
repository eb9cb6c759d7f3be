"""probectl check: every row that a real kernel answered, through the program; and hostile input."""

import codecs
import errno
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.paths import PROBECTL, TESTS
from support.probectl import environment

OFFSET, OFFSET2 = 0x1149, 0x115a
ERRNO = {"": 0, "ENOTSUP": errno.EOPNOTSUPP}
SIMPLE = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r", "v": "\v", "f": "\f", "0": "\0"}

# What probectl's JSON makes of bytes: UTF-8 as it is, any other byte as U+00XX.
codecs.register_error("byte", lambda e: (e.object[e.start:e.end].decode("latin-1"), e.end))


def as_json_shows(text):
    return text.encode("latin-1").decode("utf-8", "byte")


def unescape(text):
    return re.sub(r"\\(x..|.)", lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x"
                  else SIMPLE[m[1]], text)


def check(data, dialect="kernel", cwd=None):
    done = subprocess.run([PROBECTL, "check", "--dialect", dialect], input=data,
                          capture_output=True, timeout=60, check=False, cwd=cwd,
                          env=environment())
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kgr-")
        cls.directory = cls.folder.name
        rows = (TESTS / "data/conformance/definitions.tsv").read_text("latin-1")
        long_name = re.search("kgr(long)+", rows)[0]
        for name in ("kgrbin", "kgrbin2", "kgr.so.6", "kgr+x", "kgr:colon", "kgr(1)", "9kgr",
                     long_name):
            (Path(cls.directory) / name).write_bytes(b"anything: the kernel does not look")
        os.symlink("kgrbin", f"{cls.directory}/kgrlink")
        cls.rows = [(line + "\t" * 11).split("\t") for line in rows.splitlines()
                    if line and not line.startswith(("#", "id\t"))]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def fill(self, text):
        for name, value in (("BIN", f"{self.directory}/kgrbin"), ("DIR", self.directory),
                            ("OFF16", f"0x{OFFSET:016x}"), ("OFF2_16", f"0x{OFFSET2:016x}"),
                            ("OFF", f"{OFFSET:#x}"), ("OFF2", f"{OFFSET2:#x}")):
            text = text.replace("{%s}" % name, value)
        pad = re.search(r"\{PAD(\d+)\}", text)
        if pad:
            text = text.replace(pad[0], " " * (int(pad[1]) - len(text) + len(pad[0])))
        return unescape(text)

    def judge(self, row):
        """The verdict of the row's write, which stops at its first failure."""
        setup, line, note = self.fill(row[2]), self.fill(row[3]), row[10]
        if "no newline" not in note and not line.endswith("\n"):
            line += "\n"
        before = (setup + "\n" if setup else "").encode("latin-1")
        count = before.count(b"\n")
        _, answers = check(before + line.encode("latin-1"), cwd=self.directory)
        self.assertTrue(all(answer["ok"] for answer in answers[:count]))
        readback = []
        for answer in answers[count:]:
            readback += answer["readback"]
            if not answer["ok"]:
                break
        return answer, readback

    def test_every_row(self):
        tracefs = os.path.exists("/sys/kernel/tracing/events/sched/sched_switch")
        judged = 0
        for row in self.rows:
            if "sched/sched_switch" in row[3] and not tracefs:
                continue
            with self.subTest(row[0], line=row[3]):
                answer, readback = self.judge(row)
                number = ERRNO.get(row[5]) if row[5] in ERRNO else getattr(errno, row[5])
                self.assertEqual((answer["ok"], answer["errno"]), (row[4] == "accept", number))
                self.assertEqual(answer["message"], row[6] or None)
                self.assert_caret(row, answer)
                self.assertEqual(bool(answer["explanation"]), not answer["ok"])
                if row[1] != "delete":  # there the row tells what is left
                    expected = [] if row[9] == "-" else self.fill(row[9]).split("\n")
                    self.assertEqual(readback, [as_json_shows(line) for line in expected])
                judged += 1
        self.assertGreaterEqual(judged, 415)

    def assert_caret(self, row, answer):
        if not row[6]:
            self.assertIsNone(answer["caret"])
            return
        marked = self.fill(row[8])
        command = marked.encode("latin-1")
        at = answer["caret"]
        # One past the end is shown as the end.
        found = any(command[i:i + 1] == b"^" and
                    as_json_shows((command[:i] + command[i + 1:]).decode("latin-1")) ==
                    answer["command"] and i == min(at, len(command) - 1)
                    for i in range(len(command)))
        self.assertTrue(found, (marked, answer))


class Input(unittest.TestCase):
    def test_judged_as_if_the_accepted_ones_were_defined(self):
        code, answers = check(b"p:g/a /bin/sh:0x1000\np:g/a /bin/sh:0x1000 %zz\nr:g/a /bin/sh:0x1000"
                              b"\n-:g/a\nr:g/a /bin/sh:0x1000\n-:g/a\n-:g/a\n")
        self.assertEqual([a["errno"] for a in answers],
                         [0, errno.EINVAL, errno.EEXIST, 0, 0, 0, errno.ENOENT])
        self.assertEqual([a["line"] for a in answers], list(range(1, 8)))
        self.assertEqual(code, 1)

    def test_all_accepted(self):
        self.assertEqual(check(b"\n# nothing\np:g/a /bin/sh:0x1000\n")[0], 0)
        self.assertEqual(check(b""), (0, []))

    def test_any_bytes_give_valid_json(self):
        data = b"".join(bytes([b]) + b" p:g/a /bin/sh:0x1000 " + bytes(range(1, 256)).replace(
            b"\n", b"") + b"\n" for b in range(256) if b not in (0, 10))
        done = subprocess.run([PROBECTL, "check"], input=data, capture_output=True, timeout=60,
                              check=False)
        lines = done.stdout.decode("utf-8").splitlines()
        self.assertEqual(len([json.loads(line) for line in lines]), 254)

    def test_one_bad_line_takes_no_other_with_it(self):
        code, answers = check(b"p:g/a /bin/sh:0x10\0junk\np:g/b /bin/sh:0x10" + b" " * 5000 +
                              b"\np:g/c /bin/sh:0x10\n")
        self.assertEqual([(a["errno"], a["message"], a["reason"]) for a in answers],
                         [(errno.EINVAL, None, "NUL_BYTE"), (errno.EINVAL, None, "LINE_TOO_LONG"),
                          (0, None, "")])
        self.assertEqual(code, 1)

    def test_latin1_names(self):
        _, answers = check(b"p:g\xe9/\xc3\xa9 /bin/sh:0x10\np:g\xe9/a /bin/sh:0x10\n")
        self.assertEqual([a["ok"] for a in answers], [False, True])
        self.assertEqual(answers[1]["readback"], ["p:g\u00e9/a /bin/sh:0x0000000000000010"])

    def test_symbols_in_the_extended_dialect(self):
        shell = os.path.realpath("/usr/bin/bash")
        line = f"p:g/a {shell}:readline\n".encode()
        self.assertEqual(check(line)[1][0]["errno"], errno.EINVAL)
        code, (answer,) = check(line, "extended")
        self.assertEqual((code, answer["ok"]), (0, True))
        readelf = subprocess.run(["readelf", "--wide", "--dyn-syms", shell], capture_output=True,
                                 text=True, check=True).stdout
        address = int(re.search(r"([0-9a-f]{16}) +\d+ FUNC .* readline$", readelf, re.M)[1], 16)
        segments = subprocess.run(["readelf", "--wide", "--segments", shell], capture_output=True,
                                  text=True, check=True).stdout
        for at, virtual, size in re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", segments):
            start = int(virtual, 16)
            if start <= address < start + int(size, 16):
                address += int(at, 16) - start
                break
        self.assertEqual(answer["readback"], [f"p:g/a {shell}:0x{address:016x}"])

    def test_file_that_is_not_there(self):
        done = subprocess.run([PROBECTL, "check", "/nonexistent"], capture_output=True, text=True,
                              timeout=30, check=False)
        self.assertEqual((done.returncode, done.stdout), (5, ""))
        self.assertIn("/nonexistent", done.stderr)


class BareNames(unittest.TestCase):
    """What a name without a slash means depends on a target, and check has none."""

    def test_usual_directories(self):
        lines = b"p:a/b libc.so.6:malloc\np:a/c libc.so.6:0x10\n"
        code, verdicts = check(lines, "extended", cwd="/")
        self.assertEqual((code, [verdict["ok"] for verdict in verdicts]), (0, [True, True]))
        code, verdicts = check(lines, "kernel", cwd="/")
        self.assertEqual((code, [verdict["ok"] for verdict in verdicts]), (1, [False, False]))

    def test_explained(self):
        code, verdicts = check(b"p:a/b libno-such.so.6:malloc\np:a/c libno-such.so.6:0x10\n",
                               "extended", cwd="/")
        self.assertEqual(code, 1)
        for verdict in verdicts:
            self.assertEqual((verdict["reason"], verdict["errno_name"]), ("FILE_NOT_FOUND", "ENOENT"))
            self.assertIn("'libno-such.so.6' is a bare name", verdict["explanation"])
            self.assertIn("--dry-run", verdict["explanation"])

    def test_paths_are_not(self):
        _, (verdict,) = check(b"p:a/b /nonexistent/libc.so.6:0x10\n", "extended")
        self.assertNotIn("bare name", verdict["explanation"])

    def test_a_file_in_the_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "prog").write_bytes(b"anything")
            self.assertEqual(check(b"p:a/b prog:0x10\n", "extended", cwd=folder)[0], 0)


if __name__ == "__main__":
    unittest.main()
