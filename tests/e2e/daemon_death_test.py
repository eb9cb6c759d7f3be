"""The daemon is killed: targets live on, and everything of ours leaves them."""

import contextlib
import mmap
import os
import random
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from support import elf, maps, probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program, status, threads, tracer_of
from support.wait import wait_until

THREADS = 24
FUNCTIONS = ("twice", "add", "sum", "kept", "kept_flags")
TRAP_BIT = 1 << (signal.SIGTRAP - 1)
# Of the larger runs (./dev soak).
DEATHS = int(os.environ.get("PROBED_DEATHS", "8"))
SECONDS = float(os.environ.get("PROBED_SOAK_SECONDS", "20"))


class Hammer:
    """hammer.c, running; it counts in memory that we have mapped too."""

    def __init__(self, threads_=THREADS, *options, path=None):
        self.path = path or target("hammer")
        self._file = tempfile.NamedTemporaryFile(prefix="probed-hammer-")
        self._file.truncate(16 * (threads_ + 1))
        self.counts = mmap.mmap(self._file.fileno(), 16 * (threads_ + 1))
        self.program = Program([self.path, self._file.name, str(threads_), *options])
        self.pid = self.program.pid
        self._threads = threads_
        self._handles_traps = "handler" in options
        self._answers = 0
        self.program.wait_for("ready")
        symbols = elf.load(str(self.path)).symbols
        base = maps.load_base(self.pid, self.path)
        self.sites = [base + symbols[name].address for name in FUNCTIONS]
        self.original = self.site_bytes()
        self.definitions = [f"p:e/{name} {self.path}:{name} n=%di" for name in FUNCTIONS] + [
            f"r:e/sum_ret {self.path}:sum v=$retval", f"r:e/twice_ret {self.path}:twice v=$retval"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.__exit__()
        self.counts.close()
        self._file.close()

    def calls(self):
        return [struct.unpack_from("QQ", self.counts, 16 * i)[0] for i in range(self._threads)]

    def wrong(self):
        return sum(struct.unpack_from("QQ", self.counts, 16 * i)[1] for i in range(self._threads))

    def site_bytes(self):
        found = []
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            for site in self.sites:
                memory.seek(site)
                found.append(memory.read(8))
        return found

    def catches_traps(self):
        return int(status(self.pid, "SigCgt"), 16) & TRAP_BIT != 0

    def wait_for_calls(self):
        """Of every thread, also where there are more stops than a tracer can deal with."""
        before = self.calls()
        wait_until(lambda: all(now > then for now, then in zip(self.calls(), before)), 60,
                   "every thread makes calls")

    def assert_alive(self, case):
        case.assertIsNone(self.program.process.poll(), "the target died")

    def assert_handles_traps(self, case):
        """One more was sent and one more int3 run into; the handler has had all there were."""
        self._answers += 1
        self.program.say("x")
        self.program.wait_for(f"calls {100 * self._answers} wrong 0 traps {2 * self._answers}\n")
        self.assert_alive(case)

    def assert_goes_on(self, case):
        """Every thread makes calls, and none had a wrong answer."""
        before = self.calls()
        wait_until(lambda: self.program.process.poll() is not None or
                   all(now > then for now, then in zip(self.calls(), before)),
                   60, "every thread goes on")
        self.assert_alive(case)
        case.assertEqual(self.wrong(), 0)

    def assert_clean(self, case):
        """Nobody traces it, its code is its files', its SIGTRAP action its own."""
        self.assert_alive(case)
        wait_until(lambda: tracer_of(self.pid) == 0, 10, "nobody traces it")
        wait_until(lambda: self.catches_traps() == self._handles_traps, 10, "its action for SIGTRAP")
        case.assertEqual(maps.changed_text(self.pid), [])
        wait_until(lambda: not [tid for tid in threads(self.pid)
                                if (status(tid, "State") or "R")[0] in "Tt"], 10, "all run")


def daemon_of(pid):
    """The process whose thread traces `pid`."""
    return int(status(tracer_of(pid), "Tgid"))


def guards_of(daemon):
    """Guard processes of a daemon."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and status(name, "Name") == "probed-guard" and \
                int(status(name, "PPid") or 0) == daemon:
            found.append(int(name))
    return found


def has_ended(pid):
    return (status(pid, "State") or "Z")[0] in "ZX"


def the_guard_of(daemon):
    return wait_until(lambda: guards_of(daemon), 10, "a guard")[0]


@contextlib.contextmanager
def hurry():
    """What is measured is not to wait for the program's threads, two of which fill two CPUs."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except PermissionError:
        pass
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


class DaemonDeath(unittest.TestCase):
    def kill_one(self, hammer, switch):
        """Returns hits a second, and seconds until the program's bytes are its own again."""
        with Daemon() as daemon:
            daemon.optimize(switch)
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0],
                                   address=daemon.address):
                jumps = [site for site in daemon.settled_sites() if site["mechanism"] == "optimized"]
                self.assertEqual(len(jumps) >= 4, switch == "on", jumps)
                before, begin = sum(hammer.calls()), time.monotonic()
                hammer.wait_for_calls()
                time.sleep(random.random() * 0.2)  # a random moment, nothing is waited for
                calls = (sum(hammer.calls()) - before) / (time.monotonic() - begin)
                self.assertTrue(hammer.catches_traps())
                guard = the_guard_of(daemon.program.pid)
                with hurry():
                    begin = time.monotonic()
                    os.kill(daemon.program.pid, signal.SIGKILL)
                    while hammer.site_bytes() != hammer.original:
                        self.assertLess(time.monotonic(), begin + 20, "own bytes")
                        time.sleep(0.001)
                    needed = time.monotonic() - begin
                wait_until(lambda: has_ended(guard), 20, "the guard ends by itself")
        # A call of all hits four functions and sum 4.5 times on average, and returns 5.5 times.
        return calls * 14, needed

    def kill_under_load(self, switch):
        rates, times = [], []
        deadline = time.monotonic() + SECONDS
        with Hammer() as hammer:
            while len(times) < 2 or (len(times) < DEATHS and time.monotonic() < deadline):
                rate, needed = self.kill_one(hammer, switch)
                rates.append(rate)
                times.append(needed)
                hammer.assert_clean(self)
                hammer.assert_goes_on(self)
            self.assertEqual(hammer.program.finish(10), 0)
        times.sort()
        rate = sum(rates) / len(rates)
        if "PROBED_DEATHS" in os.environ:
            self.assertGreater(rate, 50_000, "the load that is asked for")
        print(f"\n{len(times)} deaths, {rate:.0f} hits/s; bytes back after "
              f"{times[len(times) // 2] * 1000:.1f} ms (median), {times[-1] * 1000:.1f} ms (most), "
              f"{sum(time_ <= 0.1 for time_ in times)} times within 100 ms")

    def test_killed_under_load(self):
        self.kill_under_load("off")

    def test_killed_under_load_with_jumps(self):
        self.kill_under_load("on")

    def test_guard_is_replaced(self):
        with Hammer(4) as hammer, Daemon() as daemon:
            first = the_guard_of(daemon.program.pid)
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: [pid for pid in guards_of(daemon.program.pid) if pid != first], 10,
                       "another guard")
            self.assertIsNone(status(first, "Name"), "the first is still a zombie")
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0],
                                   address=daemon.address):
                os.kill(daemon.program.pid, signal.SIGKILL)
                wait_until(lambda: hammer.site_bytes() == hammer.original, 10, "own bytes")
            hammer.assert_clean(self)
            hammer.assert_goes_on(self)

    def test_next_start_cleans(self):
        with Hammer(8) as hammer, tempfile.TemporaryDirectory() as folder:
            with Daemon(runtime_directory=folder) as daemon:
                guard = the_guard_of(daemon.program.pid)
                with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0],
                                       address=daemon.address):
                    daemon.settled_sites()
                    hammer.wait_for_calls()
                    daemon.program.signal(signal.SIGSTOP)  # so that it starts no other guard
                    os.kill(guard, signal.SIGKILL)
                    daemon.program.signal(signal.SIGKILL)
                    wait_until(lambda: tracer_of(hammer.pid) == 0, 10, "the daemon is gone")
                    # Every hit is a SIGTRAP that the handler in the target answers by waiting.
                    self.assertNotEqual(hammer.site_bytes(), hammer.original)
            self.assertNotEqual(os.listdir(folder), [])
            with Daemon(runtime_directory=folder) as daemon:
                hammer.assert_clean(self)
                self.assertEqual(hammer.site_bytes(), hammer.original)
                hammer.assert_goes_on(self)
                self.assertEqual(len(os.listdir(folder)), 1)  # its own
                self.assertEqual(daemon.program.process.poll(), None)

    def test_program_with_a_handler(self):
        with Hammer(0, "handler") as hammer:
            hammer.assert_handles_traps(self)
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0]):
                hammer.assert_handles_traps(self)
                os.kill(daemon_of(hammer.pid), signal.SIGKILL)
                wait_until(lambda: hammer.site_bytes() == hammer.original, 10, "own bytes")
            hammer.assert_handles_traps(self)
            hammer.assert_clean(self)

    def test_killed_under_load_of_a_go_program(self):
        path = target("hello-go")
        rounds = 40_000
        expected = subprocess.run([path, str(rounds)], capture_output=True, timeout=60).stdout
        definitions = [f"p:e/step {path}:main.step n=%ax", f"r:e/grow {path}:main.grow"]
        with Program([path, str(rounds), "wait"]) as program, Daemon() as daemon:
            program.wait_for("ready\n")
            site = elf.load(str(path)).symbols["main.step"].address
            with probectl.Attached(program.pid, definitions, armed=site, address=daemon.address) as trace:
                program.say("x")
                trace.wait_for_records(1000)
                os.kill(daemon.program.pid, signal.SIGKILL)
                wait_until(lambda: tracer_of(program.pid) == 0, 10, "nobody traces it")
            self.assertEqual(program.finish(60), 0, program.err[:400])
            self.assertEqual(program.out, "ready\n" + expected.decode())

    def test_no_counts_are_made_up(self):
        with Hammer(2) as hammer, Daemon() as daemon:
            with probectl.Attached(hammer.pid, [f"p:e/twice {hammer.path}:twice"],
                                   armed=hammer.sites[0], address=daemon.address) as session:
                session.wait_for_records(1)
                os.kill(daemon.program.pid, signal.SIGKILL)
                self.assertEqual(session.finish(20), 3, session.program.err)
            self.assertIn("  (the daemon has ended, with its counters)\n", session.program.err)
            self.assertIn("try: the daemon has ended", session.program.err)
            self.assertNotIn("hits 0", session.program.err)
            hammer.assert_clean(self)
            wait_until(lambda: "gave back 1 process: " in daemon.program.err, 10, "the guard's word")
            self.assertNotIn(" 0 return", daemon.program.err)  # no return probe was there

    def test_terminated_under_load(self):
        with Hammer(8) as hammer:
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0]):
                hammer.wait_for_calls()
                os.kill(daemon_of(hammer.pid), signal.SIGTERM)
                wait_until(lambda: tracer_of(hammer.pid) == 0, 10, "given back")
                hammer.assert_clean(self)
            hammer.assert_goes_on(self)

    def test_own_trap_still_kills(self):
        with Hammer(2) as hammer:
            with probectl.Attached(hammer.pid, hammer.definitions, armed=hammer.sites[0]):
                os.kill(hammer.pid, signal.SIGTRAP)
                self.assertEqual(hammer.program.finish(10, close_input=False), -signal.SIGTRAP)


if __name__ == "__main__":
    unittest.main()
