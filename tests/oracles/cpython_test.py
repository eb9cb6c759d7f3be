"""Python's own tests of what a tracer could disturb, with probes on the interpreter's functions,
entries and returns. PROBED_SOAK=1: whole test modules, and all functions."""

import os
import re
import tempfile
import unittest

from oracle import SOAK, Oracle, definitions

PYTHON = os.path.realpath("/usr/bin/python3.11")

# What a minute is too short for is left to the soak.
PARTS = {
    "test_signal": ["*PosixTests*", "*test_sigpending*", "*test_sigwait", "*test_pthread_kill*",
                    "*test_pthread_sigmask"],
    "test_subprocess": ["*test_preexec*", "*test_restore_signals*", "*test_start_new_session*",
                        "*test_terminate", "*test_kill"],
    "test_faulthandler": ["*test_sigsegv", "*test_sigabrt", "*test_sigfpe", "*test_dump_traceback",
                          "*test_register"],
    "test_ctypes": ["*callback*", "*test_cfuncs*", "*test_byteswap*"],
    "test_posix": ["*TestPosixSpawn.*"],
    "test_threading": ["*ThreadTests.test_various_ops*", "*ThreadTests.test_foreign_thread",
                       "*ThreadTests.test_enumerate_after_join", "*ThreadJoinOnShutdown.test_1_join*",
                       "*ConditionTests*wait*", "*BarrierTests.test_barrier"],
}
WHOLE = ["test_signal", "test_threading", "test_subprocess", "test_ctypes", "test_faulthandler",
         "test_fork1", "test_posix", "test_wait3", "test_wait4", "test_pty", "test_thread",
         "test_selectors", "test_mmap", "test_exceptions", "test_generators"]
# Fails without us, too, where the tests run in a virtual environment.
LEFT_OUT = ["-i", "*test_4_daemon_threads*"]


def verdict(program):
    result = re.search(r"Tests? result: (.*)", program.out)
    return result and result[1], re.findall(r"^Ran (\d+) tests?", program.out + program.err, re.M)


class CPython(Oracle):
    def check(self, words, lines):
        folder = tempfile.TemporaryDirectory(prefix="probed-python-")
        self.addCleanup(folder.cleanup)
        native = self.same([PYTHON, "-m", "test", "-v", *words, *LEFT_OUT], lines, verdict, least=1000,
                           seconds=1500, cwd=folder.name)
        self.assertIn("SUCCESS", native.out)


def add(name, words, step):
    def test(self):
        self.check(words, definitions(PYTHON, step=step))
    setattr(CPython, name, test)


if SOAK:
    for one in WHOLE:
        add(one, [one], 2)
else:
    for one, patterns in PARTS.items():
        add(one, [one, *(word for pattern in patterns for word in ("-m", pattern))], 40)

if __name__ == "__main__":
    unittest.main()
