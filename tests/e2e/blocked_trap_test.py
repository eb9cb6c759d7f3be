"""A program that blocks all signals for a moment, as Python's subprocess does, runs into a breakpoint
meanwhile: the kernel puts the default action of SIGTRAP in place, and ours must come back."""

import os
import signal
import sys
import unittest

from support import maps, probectl
from support.daemon import Daemon
from support.process import Program, status, tracer_of
from support.wait import wait_until

_PROGRAM = """
import os, signal, time
print("ready", flush=True)
input()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.getppid()
signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
print("blocked", flush=True)
while os.path.exists(f"/proc/{os.getppid()}"):
    time.sleep(0.001)
"""

_ALL_BUT_TRAPS = """
import os, signal, sys, time
print("ready", flush=True)
input()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGTRAP})
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
for _ in range(100):
    os.getppid()
print("same", signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask, flush=True)
"""


def catches_traps(pid):
    return int(status(pid, "SigCgt"), 16) >> (signal.SIGTRAP - 1) & 1 == 1


class BlockedTrap(unittest.TestCase):
    def test_the_handler_comes_back(self):
        with Program([sys.executable, "-c", _PROGRAM]) as program, Daemon() as daemon:
            program.wait_for("ready")
            daemon.optimize("off")
            with probectl.Attached(program.pid, ["p:e/g libc.so.6:getppid"],
                                   address=daemon.address) as session:
                program.say("go\n")
                program.wait_for("blocked")
                session.wait_for_records(100)
                wait_until(lambda: catches_traps(program.pid), 10, "our handler stands again")
                os.kill(daemon.program.pid, signal.SIGKILL)
                wait_until(lambda: tracer_of(program.pid) == 0, 10, "nobody traces it")
                wait_until(lambda: maps.changed_text(program.pid) == [], 10, "own bytes")
            self.assertIsNone(program.process.poll())

    def test_a_mask_without_it_stays_so(self):
        with Program([sys.executable, "-c", _ALL_BUT_TRAPS]) as program, Daemon() as daemon:
            program.wait_for("ready")
            daemon.optimize("off")
            with probectl.Attached(program.pid, ["p:e/g libc.so.6:getppid"],
                                   address=daemon.address) as session:
                program.say("go\n")
                program.wait_for("same")
                session.wait_for_records(100)
                self.assertEqual(session.finish(20), 0, session.program.err)
            self.assertIn("same True\n", program.out)


if __name__ == "__main__":
    unittest.main()
