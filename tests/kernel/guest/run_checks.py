"""Runs checks in the guest: `run_checks.py MODULE[.CLASS[.TEST]],... RESULTS`.

The checks are unittest tests. Every one of them is a line in RESULTS (see machine.py); what more
there is to say about a failure goes to the console.
"""

import sys
import time
import traceback
import unittest


class Lines(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self._out = out
        self._started = 0.0

    def say(self, *words):
        self._out.write(" ".join(words).replace("\n", " | ") + "\n")
        self._out.flush()

    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()
        print("check", test.id(), flush=True)

    def stopTest(self, test):
        print(f"check {test.id()} took {time.monotonic() - self._started:.1f} s", flush=True)
        super().stopTest(test)

    def addSuccess(self, test):
        self.say("ok", test.id())

    def addSkip(self, test, reason):
        self.say("skip", _name(test), reason)

    def addFailure(self, test, err):
        self._report(test, err)

    def addError(self, test, err):
        self._report(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._report(subtest, err)

    def _report(self, test, err):
        traceback.print_exception(*err)
        sys.stderr.flush()
        self.say("fail", _name(test), f"{err[0].__name__}: {err[1]}"[:500])


def _name(test):
    return test.id().replace(" ", "_")


def main(modules, path):
    with open(path, "w", encoding="utf-8", errors="replace") as out:
        result = Lines(out)
        unittest.defaultTestLoader.loadTestsFromNames(modules.split(",")).run(result)
        result.say("done")


main(*sys.argv[1:])
