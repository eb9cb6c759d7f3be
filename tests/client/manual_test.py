"""The manual pages and --help say the same."""

import re
import subprocess
import unittest

from support.paths import PROBECTL, ROOT

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

    def test_options_of_the_program(self):
        page = (MANUAL / "probectl.1.md").read_text()
        self.assertEqual(documented_options(page), helped_options(help_of()))
        for verb in verbs():
            self.assertIn(f"probectl-{verb}(1)", page)

    def test_exit_statuses_are_those_of_the_source(self):
        page = (MANUAL / "probectl.1.md").read_text()
        table = page.split("# EXIT STATUS")[1].split("# ENVIRONMENT")[0]
        documented = {int(n) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.M)
                      for n in row.split(",")}
        source = (ROOT / "client/exit_code.h").read_text()
        self.assertEqual(documented, {int(n) for n in re.findall(r"k\w+ = (\d+),", source)})


if __name__ == "__main__":
    unittest.main()
