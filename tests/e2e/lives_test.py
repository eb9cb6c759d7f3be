"""Lives of processes under probes: what a parent is told of its children is what it would have been
told without, none of their calls is missed, and nothing is left in any. PROBED_SOAK=1 makes the
numbers large."""

import os
import unittest

from support import elf, maps, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, is_running_free, run
from support.wait import wait_until

SOAK = os.environ.get("PROBED_SOAK") == "1"


def is_armed(pid, path, function):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(maps.load_base(pid, path) + elf.load(str(path)).symbols[function].address)
        return memory.read(1) in (b"\xcc", b"\xe9", b"\xeb")


class Lives(unittest.TestCase):
    """Each way to begin and to end, several times: it has races."""

    ROUNDS = 100 if SOAK else 4

    def same_as_native(self, *options):
        """With breakpoints, and with what becomes of them, in turn."""
        path = target("lives")
        native = run([path])
        self.assertEqual(native.code, 0)
        for i in range(self.ROUNDS):
            with Daemon() as daemon:
                daemon.optimize(("off", "on")[i % 2])
                with probectl.run([f"p:e/p {path}:work", f"r:e/r {path}:work"], [path], *options,
                                  address=daemon.address) as session:
                    code = session.finish(60)
                    self.assertEqual((code, session.program.out), (native.code, native.out),
                                     session.program.err)
                    yield session.records, dict(line.rsplit(" ", 1) for line in
                                                native.out.splitlines()[-2:])

    def test_followed(self):
        for records, told in self.same_as_native():
            counts = trace.counts(records)
            self.assertEqual((counts["p"], counts["r"]), (int(told["calls"]),) * 2)

    def test_released(self):
        for records, told in self.same_as_native("--no-follow"):
            counts = trace.counts(records)
            self.assertEqual((counts["p"], counts["r"]), (int(told["shared"]),) * 2)


class Sharing(unittest.TestCase):
    """Every set of what clone(2) may share, in children and threads that run beside their maker, with
    its thread pointer, too."""

    def counted(self, word, *options):
        path = target("clones")
        native = run([path])
        self.assertEqual(native.code, 0, native.out)
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization), Daemon() as daemon:
                daemon.optimize(optimization)
                with probectl.run([f"p:e/p {path}:work", f"r:e/r {path}:work"], [path], *options,
                                  address=daemon.address) as session:
                    code = session.finish(60)
                    self.assertEqual((code, session.program.out), (native.code, native.out),
                                     session.program.err)
                    calls = int(session.program.err.split(f"{word} ")[1].split()[0])
                    self.assertEqual(trace.counts(session.records), {"p": calls, "r": calls},
                                     session.program.err)

    def test_followed(self):
        self.counted("calls")

    def test_released(self):
        self.counted("shared", "--no-follow")


class Untraced(unittest.TestCase):
    """Made with CLONE_UNTRACED: no tracer is told."""

    def definitions(self, optimization):
        path = target("untraced")
        return [f"p:e/p {path}:work n=%di:s64", f"r:e/r {path}:work v=$retval:s64"]

    def test_they_are_found_at_their_first_breakpoint(self):
        """What runs in the program's memory is traced from there on; a copy of it is made clean."""
        path = target("untraced")
        native = run([path])
        self.assertEqual(native.out, "vm 0x500\nvm vfork 0x500\nfork 0x500\ncalls 80 wrong 0\n")
        for options in ((), ("--no-follow",)):
            with self.subTest(options), Daemon() as daemon:
                daemon.optimize("off")
                with probectl.run(self.definitions("off"), [path], *options,
                                  address=daemon.address) as session:
                    code = session.finish(30)
                    self.assertEqual((code, session.program.out), (0, native.out),
                                     session.program.err)
                    self.assertEqual(trace.counts(session.records), {"p": 60, "r": 60})

    def test_one_that_cannot_be_taken_yet(self):
        """Another traces it, or it does not stop (in the soak, it takes twelve seconds): then it is
        tried again after a while, until when it waits at its first breakpoint."""
        path = target("untraced")
        for how, said in (("debug", "debugged"), ("sleep", "slept"))[:2 if SOAK else 1]:
            with self.subTest(how), Daemon() as daemon:
                daemon.optimize("off")
                with probectl.run(self.definitions("off"), [path, how],
                                  address=daemon.address) as session:
                    code = session.finish(30)
                    self.assertEqual((code, session.program.out), (0, f"{said} 0x500 calls 20\n"),
                                     session.program.err)

    def test_detach_while_one_runs(self):
        path = target("untraced")
        for optimization in ("off", "on"):
            with self.subTest(optimization), Daemon() as daemon, \
                    Program([path, "spin", "wait"]) as program:
                daemon.optimize(optimization)
                program.wait_for("ready")
                with probectl.Attached(program.pid, self.definitions(optimization),
                                       armed=maps.load_base(program.pid, path) +
                                       elf.load(str(path)).symbols["work"].address,
                                       address=daemon.address) as session:
                    daemon.settled_sites()
                    program.say("\n")
                    program.wait_for("spins", 20)
                    session.wait_for_records(1000)
                    self.assertEqual(session.detach(), 0, session.program.err)
                wait_until(lambda: is_running_free(program.pid), 10, "it runs free")
                self.assertEqual(maps.changed_text(program.pid), [])
                program.say("\n")
                self.assertEqual(program.finish(20, close_input=False), 0, program.out)
                self.assertIn(" wrong 0\n", program.out)


def held_by(pid):
    """How many descriptors and mappings a process has."""
    with open(f"/proc/{pid}/maps", encoding="latin-1") as file:
        return len(os.listdir(f"/proc/{pid}/fd")), len(file.readlines())


class Numbers(unittest.TestCase):
    def live_for_a_moment(self, daemon, count):
        """Each calls once, and so does the parent at both ends."""
        path = target("forker")
        with probectl.run([f"p:e/w {path}:work", f"r:e/r {path}:work"], [path, str(count), "1"],
                          address=daemon.address) as session:
            self.assertEqual(session.finish(900), 0, session.program.err)
            self.assertEqual(session.program.out, f"total {count + 2}\n")
            records = session.records
        self.assertEqual(trace.counts(records), {"w": count + 2, "r": count + 2})
        self.assertEqual(len({record.pid for record in records}), count + 1)

    def test_processes_that_live_for_a_moment(self):
        """However many there were, the daemon has no more of them than of a few."""
        count, few = (10000, 500) if SOAK else (300, 60)
        with Daemon() as daemon:
            self.live_for_a_moment(daemon, few)
            descriptors, mappings = held_by(daemon.program.pid)
            self.live_for_a_moment(daemon, count)
            # Threads of the server's come and go: each has an arena of the allocator, and a stack.
            few_more = 64
            wait_until(lambda: held_by(daemon.program.pid)[0] <= descriptors + 4, 20,
                       f"descriptors go: {descriptors} {held_by(daemon.program.pid)}")
            self.assertLess(held_by(daemon.program.pid)[1], mappings + few_more)

    def test_two_hundred_targets(self):
        path, threads, all_targets = target("churn"), 20, []
        for _ in range(200):
            program = Program([path, str(threads), "wait"])
            self.addCleanup(program.__exit__)
            all_targets.append(program)
        for program in all_targets:
            program.wait_for("ready")
        pids = [word for program in all_targets for word in ("--pid", str(program.pid))]
        with probectl.Stream("attach", [f"p:e/s {path}:step"], pids) as session:
            session.program.wait_for("attached to", 60, stream="err")
            for program in all_targets:
                wait_until(lambda: is_armed(program.pid, path, "step"), 60, "armed")
            for program in all_targets:
                program.say("\n")
            for program in all_targets:
                self.assertEqual(program.finish(60, close_input=False), 0)
                self.assertTrue(program.out.endswith(f"calls {threads}\n"), program.out)
            self.assertEqual(session.finish(60), 0, session.program.err)
            self.assertEqual(len(session.records), 200 * threads)


if __name__ == "__main__":
    unittest.main()
