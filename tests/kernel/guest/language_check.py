"""The language's differential test, against this kernel's uprobe_events."""

import json
import os
import unittest
from pathlib import Path

from support.paths import BUILD, ROOT
from support.process import run

_REPORT = Path("/tmp/language.json")
# Here, each accepted filter takes the kernel 50 ms.
_LESS = {"PROBED_LANG_LINES": "3000", "PROBED_LANG_FILTERS": "200", "PROBED_LANG_HIT_FILTERS": "60"}


def _tests(report):
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            failures = " ".join(failure["failure"] for failure in test.get("failures", []))
            yield f"{suite['name']}.{test['name']}", test["result"], failures


class Language(unittest.TestCase):
    def test_differential(self):
        program = run([BUILD / "tests" / "lang_kernel_differential_test",
                       f"--gtest_output=json:{_REPORT}"], 600, cwd=ROOT,
                      env=os.environ | _LESS)
        print(program.out[-20000:], program.err[-2000:])
        tests = list(_tests(json.loads(_REPORT.read_text())))
        self.assertGreater(len(tests), 5)
        for name, result, failures in tests:
            with self.subTest(name):
                self.assertEqual((result, failures), ("COMPLETED", ""))
