"""The manual pages and --help say the same."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.paths import BUILD, PROBECTL, PROBED, ROOT

MANUAL = ROOT / "docs/man"


def help_of(*words):
    return subprocess.run([PROBECTL, *words, "--help"], capture_output=True, text=True, timeout=30,
                          check=True).stdout


def verbs():
    return re.findall(r"^  ([a-z]+) ", help_of().split("Subcommands:")[1], re.M)


def helped_options(text):
    """Every spelling at the start of an option's line."""
    heads = re.findall(r"^  (-\S+)", text, re.M)
    return {name.split(":")[0] for head in heads for name in head.split(",")}


def documented_options(text):
    section = re.search(r"^# OPTIONS\n(.*?)^# ", text, re.M | re.S)[1]
    heads = re.findall(r"^(\*\*-.*)\n:   ", section, re.M)
    return {name for head in heads for name in re.findall(r"\*\*(-[^*]+)\*\*", head)}


def helped_texts(text):
    """What --help says of each option, by its longest spelling; one line each."""
    entries = re.findall(r"^  (-.*(?:\n {4,}.*)*)", text, re.M)
    return {_longest(re.match(r"\S+", entry)[0].split(":")[0].split(",")): " ".join(entry.split())
            for entry in entries}


def documented_texts(page):
    section = re.search(r"^# OPTIONS\n(.*?)^# ", page, re.M | re.S)[1]
    entries = re.findall(r"^(\*\*-.*)\n:   (.*(?:\n(?!\n|\*\*).*)*)", section, re.M)
    return {_longest(re.findall(r"\*\*(-[^*]+)\*\*", head)):
            " ".join(re.sub(r"\\(.)", r"\1", text).replace("**", "").split())
            for head, text in entries}


def _longest(names):
    return max(names, key=len)


class Manual(unittest.TestCase):
    def test_one_page_per_verb(self):
        pages = {path.name for path in MANUAL.glob("probectl*.1.md")}
        self.assertEqual(pages, {"probectl.1.md"} | {f"probectl-{v}.1.md" for v in verbs()})
        self.assertGreaterEqual(len(pages), 18)

    def test_options_of_every_verb(self):
        for verb in verbs():
            with self.subTest(verb):
                page = (MANUAL / f"probectl-{verb}.1.md").read_text()
                self.assertEqual(documented_options(page), helped_options(help_of(verb)))
                helped = helped_texts(help_of(verb))
                for name, text in documented_texts(page).items():
                    self.assertTrue(helped[name].endswith(text), f"{name}: {text}")

    def test_options_of_the_program(self):
        page = (MANUAL / "probectl.1.md").read_text()
        self.assertEqual(documented_options(page), helped_options(help_of()))
        for verb in verbs():
            self.assertIn(f"probectl-{verb}(1)", page)

    def test_exit_statuses_are_those_of_the_source(self):
        page = (MANUAL / "probectl.1.md").read_text()
        table = page.split("# EXIT STATUS")[1].split("# ENVIRONMENT")[0]
        documented = {int(n) for row in re.findall(r"^([\d, ]+)\n:   ", table, re.M)
                      for n in row.split(",")}
        source = (ROOT / "client/exit_code.h").read_text()
        self.assertEqual(documented, {int(n) for n in re.findall(r"k\w+ = (\d+),", source)})


class Daemon(unittest.TestCase):
    def test_options_of_probed(self):
        text = subprocess.run([PROBED, "--help"], capture_output=True, text=True, timeout=30,
                              check=True).stdout
        page = (MANUAL / "probed.8.md").read_text().replace("\\-", "-")
        section = re.search(r"^# OPTIONS\n(.*?)^# ", page, re.M | re.S)[1]
        documented = set(re.findall(r"^\*\*(--[a-z-]+)", section, re.M))
        self.assertEqual(documented | {"-h", "--help"}, helped_options(text))


class Installation(unittest.TestCase):
    """cmake --install into a folder of our own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = Path(cls.folder.name)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.root], check=True, timeout=60,
                       capture_output=True)

    def test_programs_units_and_completion(self):
        for name in ("bin/probed", "bin/probectl", "lib/systemd/system/probed.service",
                     "lib/systemd/system/probed.socket", "lib/sysusers.d/probed.conf",
                     "lib/tmpfiles.d/probed.conf", "share/bash-completion/completions/probectl"):
            self.assertTrue((self.root / name).is_file(), name)
        version = subprocess.run([self.root / "bin/probectl", "--version"], capture_output=True,
                                 text=True, timeout=30, check=True).stdout
        self.assertRegex(version, r"^probectl \d")
        unit = (self.root / "lib/systemd/system/probed.service").read_text()
        self.assertRegex(unit, r"(?m)^ExecStart=/[^ ]*/bin/probed$")
        self.assertEqual(len(unit), len((ROOT / "daemon/systemd/probed.service").read_text()) +
                         len(re.search("ExecStart=(.*)", unit)[1]) - len("/usr/bin/probed"))

    @unittest.skipUnless(shutil.which("lowdown") and shutil.which("man"), "no lowdown, or no man")
    def test_manual_pages(self):
        pages = sorted(self.root.glob("share/man/man*/*"))
        self.assertEqual({page.name + ".md" for page in pages},
                         {path.name for path in MANUAL.glob("*.md")})
        for page in pages:
            with self.subTest(page.name):
                done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True,
                                      text=True, timeout=30, check=True,
                                      env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8",
                                           "PATH": "/usr/bin:/bin"})
                self.assertEqual(done.stderr, "")
                name, section = page.name.rsplit(".", 1)
                self.assertTrue(done.stdout.startswith(f"{name}({section})"), done.stdout[:80])
                for heading in ("NAME", "SYNOPSIS", "OPTIONS", "SEE ALSO"):
                    self.assertIn(f"\n{heading}\n", done.stdout)

    @unittest.skipUnless(shutil.which("lowdown") and shutil.which("man"), "no lowdown, or no man")
    def test_names_keep_their_underscores(self):
        """Markdown takes them for emphasis in some places, and drops them."""
        for source in sorted(MANUAL.glob("*.md")):
            written = set(re.findall(r"\w*_\w*", source.read_text()))
            with self.subTest(source.name):
                page, = self.root.glob(f"share/man/man*/{source.stem}")
                # Lines are broken at blanks only: each name is in one piece.
                shown = subprocess.run(["man", "--no-hyphenation", "-l", page], text=True,
                                       capture_output=True, timeout=30, check=True,
                                       env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8",
                                            "PATH": "/usr/bin:/bin"}).stdout
                self.assertEqual(written - set(re.findall(r"\w*_\w*", shown)), set())


if __name__ == "__main__":
    unittest.main()
