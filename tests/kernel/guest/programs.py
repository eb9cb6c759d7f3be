"""Runs a program of googletest's, each of whose tests is a check of its own."""

import json
import os
from pathlib import Path

from support.paths import BUILD, ROOT
from support.process import run


def _tests(report):
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            failures = " ".join(failure["failure"] for failure in test.get("failures", []))
            yield f"{suite['name']}.{test['name']}", test["result"], failures


def assert_passes(case, name, *words, environment=None, seconds=600):
    """All tests ran, none was skipped, none failed; returns their number."""
    report = Path(f"/tmp/{name}.json")
    program = run([BUILD / "tests" / name, f"--gtest_output=json:{report}", *words], seconds,
                  cwd=ROOT, env=os.environ | (environment or {}))
    print(program.out[-20000:], program.err[-2000:])
    tests = list(_tests(json.loads(report.read_text())))
    for test, result, failures in tests:
        if result != "SUPPRESSED":
            with case.subTest(test):
                case.assertEqual((result, failures), ("COMPLETED", ""))
    return sum(result == "COMPLETED" for _, result, _ in tests)
