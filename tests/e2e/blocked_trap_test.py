"""A program that blocks all signals for a moment, as Python's subprocess does, runs into a breakpoint
meanwhile: the kernel puts the default action of SIGTRAP in place, and ours must come back."""

import os
import signal
import sys
import tempfile
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

# It prints after hits, in a new thread, in a child, after a detach, in a new image.
_ALL_BUT_TRAPS = """
import os, signal, sys, threading
def show(where):
    with open("/proc/thread-self/status") as file:
        blocked = [line for line in file if line.startswith("SigBlk")][0].split()[1]
    print(where, blocked == "{:016x}".format(mask), flush=True)
if len(sys.argv) > 1:
    mask = int(sys.argv[1])
    show("image")
    sys.exit()
print("ready", flush=True)
input()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGTRAP})
mask = sum(1 << number - 1 for number in signal.pthread_sigmask(signal.SIG_BLOCK, []))
for _ in range(100):
    os.getppid()
show("hits")
thread = threading.Thread(target=lambda: (os.getppid(), show("thread")))
thread.start()
thread.join()
if os.fork() == 0:
    os.getppid()
    show("child")
    os._exit(0)
os.wait()
input()
show("detached")
input()
os.getppid()
os.execv(sys.executable, [sys.executable, __file__, str(mask)])
"""

# Only one of its threads blocks the signal, for which nobody waits.
_ONE_BLOCKS = """
import os, signal, threading
def run():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTRAP})
    while True:
        os.getppid()
print("ready", flush=True)
input()
threading.Thread(target=run, daemon=True).start()
input()
"""


def catches_traps(pid):
    return int(status(pid, "SigCgt"), 16) >> (signal.SIGTRAP - 1) & 1 == 1


def is_reading(pid):
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().startswith("0 ")


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

    def test_the_default_action_stays_that_of_others(self):
        with Program([sys.executable, "-c", _ONE_BLOCKS]) as program, Daemon() as daemon:
            program.wait_for("ready")
            daemon.optimize("off")
            with probectl.Attached(program.pid, ["p:e/g libc.so.6:getppid"],
                                   address=daemon.address) as session:
                program.say("go\n")
                session.wait_for_records(1000)
                # The first thread waits for input: not for the signal, and it will not soon.
                wait_until(lambda: is_reading(program.pid), 10, "it reads")
                program.signal(signal.SIGTRAP)
                self.assertEqual(program.finish(10, close_input=False), -signal.SIGTRAP)

    def test_a_mask_without_it_stays_so(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file, Daemon() as daemon:
            file.write(_ALL_BUT_TRAPS)
            file.flush()
            daemon.optimize("off")
            with Program([sys.executable, file.name]) as program:
                program.wait_for("ready")
                with probectl.Attached(program.pid, ["p:e/g libc.so.6:getppid"],
                                       address=daemon.address) as session:
                    program.say("go\n")
                    program.wait_for("child")
                    session.wait_for_records(101)
                    self.assertEqual(session.detach(), 0, session.program.err)
                program.say("go\n")
                program.wait_for("detached")
                with probectl.Attached(program.pid, ["p:e/g libc.so.6:getppid"],
                                       address=daemon.address) as session:
                    program.say("go\n")
                    program.wait_for("image")
                    session.wait_for_records(1)
                self.assertEqual(program.finish(20), 0, program.err)
        self.assertEqual(program.out.splitlines()[1:],
                         [f"{where} True" for where in
                          ("hits", "thread", "child", "detached", "image")])


if __name__ == "__main__":
    unittest.main()
