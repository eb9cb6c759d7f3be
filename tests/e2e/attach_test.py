"""Attach to running programs and let them go unharmed."""

import os
import signal
import unittest

from support import elf, maps, probectl, trace
from support.paths import target
from support.process import Program, is_running_free, status, threads, tracer_of
from support.wait import wait_until


class Counter:
    """counter.c, running; `site` is the address of its function."""

    def __enter__(self):
        self.path = target("counter")
        self.program = Program([self.path])
        self.pid = self.program.pid
        self.program.wait_for("ready")
        self.site = maps.load_base(self.pid, self.path) + elf.load(str(self.path)).symbols[
            "work"].address
        return self

    def __exit__(self, *_):
        self.program.__exit__()

    def assert_unharmed(self, case):
        """Free, its code as in the file, and right to the end."""
        wait_until(lambda: is_running_free(self.pid), 5, "the target runs free")
        case.assertEqual(maps.changed_text(self.pid), [])
        case.assertEqual(self.program.finish(10), 0)
        case.assertRegex(self.program.out, r"calls \d+ wrong 0\n$")


class Attach(unittest.TestCase):
    def test_attach_watch_detach(self):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work n=%di:u64 "
                                                 "t=+0(%si):string",
                                                 f"r:e/x {counter.path}:work v=$retval:u64"],
                                   armed=counter.site) as session:
                session.wait_for_records(200)
                # Elsewhere there is our own breakpoint in the dynamic linker.
                changed = {c[1]: c[2] for c in maps.changed_text(counter.pid)
                           if c[0] == str(counter.path)}
                work = elf.offset(counter.path, "work")
                self.assertIn(changed[work], (0xcc, 0xe9), "a breakpoint, or the jump it becomes")
                self.assertLessEqual(set(changed), set(range(work, work + 5)))
                self.assertEqual(session.detach(), 0, session.program.err)
                records = session.records
            entries = [r for r in records if r.event == "w"]
            numbers = [int(r.arguments.split("=")[1].split()[0]) for r in entries]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            self.assertTrue(all(r.arguments.endswith(' t="counter"') for r in entries))
            for entry, ret in zip(entries, [r for r in records if r.event == "x"]):
                n = int(entry.arguments.split("=")[1].split()[0])
                self.assertEqual(ret.arguments, f"v={2 * n + ord('c')}")
            counter.assert_unharmed(self)

    def test_again_and_again(self):
        with Counter() as counter:
            before = None
            for _ in range(8):
                with probectl.Attached(counter.pid, [f"r:e/w {counter.path}:work"], "--count",
                                       "20") as session:
                    self.assertEqual(session.finish(20), 0, session.program.err)
                    self.assertEqual(len(session.records), 20)
                wait_until(lambda: is_running_free(counter.pid), 5, "free")
                self.assertEqual(maps.changed_text(counter.pid), [])
                if before is None:
                    before = maps.maps(counter.pid)
            self.assertEqual(maps.foreign_mappings(counter.pid, before), [])
            counter.assert_unharmed(self)

    def test_duration(self):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"], "--duration",
                                   "0.5") as session:
                self.assertEqual(session.finish(20), 0, session.program.err)
                self.assertGreater(len(session.records), 10)
            counter.assert_unharmed(self)

    def test_neighbour_is_not_touched(self):
        with Counter() as counter, Counter() as neighbour:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   armed=counter.site) as session:
                session.wait_for_records(10)
                self.assertEqual(maps.changed_text(neighbour.pid), [])
                self.assertTrue(is_running_free(neighbour.pid))
                self.assertEqual({r.pid for r in session.records}, {counter.pid})
                session.detach()
            counter.assert_unharmed(self)
            neighbour.assert_unharmed(self)

    def test_client_killed(self):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work",
                                                 f"r:e/x {counter.path}:work"],
                                   armed=counter.site) as session:
                session.wait_for_records(20)
                session.program.signal(signal.SIGKILL)
                session.program.finish(10, close_input=False)
            counter.assert_unharmed(self)

    def test_sigterm_and_hangup(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), Counter() as counter:
                with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                       armed=counter.site) as session:
                    session.wait_for_records(20)
                    session.program.signal(number)
                    session.program.finish(10, close_input=False)
                counter.assert_unharmed(self)

    def test_reader_goes_away(self):
        with Counter() as counter:
            with Program([probectl.PROBECTL, "attach", "--pid", counter.pid, "-e",
                          f"p:e/w {counter.path}:work"], env=probectl.environment()) as program:
                program.wait_for("w: (0x", 20)
                program.process.stdout.close()
                program.finish(10, close_input=False)
            counter.assert_unharmed(self)

    def test_target_that_ends_meanwhile(self):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   armed=counter.site) as session:
                session.wait_for_records(20)
                self.assertEqual(counter.program.finish(10), 0)
                self.assertEqual(session.finish(10), 0, session.program.err)
            calls = int(counter.program.out.split("calls ")[1].split()[0])
            self.assertGreater(calls, 20)

    def test_target_that_ends_while_probectl_prepares(self):
        """Its end must be seen even when it comes before the stream is open."""
        path = target("values", "gcc-O1-pie-nocf")
        for _ in range(6):
            with Program([path, "1", "wait"]) as program:
                program.wait_for("ready")
                with probectl.Stream("attach", [f"p:e/w {path}:probe_me"],
                                     ["--pid", str(program.pid)]) as session:
                    wait_until(lambda: tracer_of(program.pid) != 0, 20, "the tracer")
                    program.say("\n")
                    self.assertEqual(program.finish(20, close_input=False), 0)
                    self.assertIn(session.finish(15), (0, 5), session.program.err)

    def test_target_killed_meanwhile(self):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   armed=counter.site) as session:
                session.wait_for_records(20)
                counter.program.kill()
                session.finish(10)
                self.assertEqual(counter.program.process.returncode, -9)

    def test_job_control_is_transparent(self):
        with Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   armed=counter.site) as session:
                session.wait_for_records(20)
                os.kill(counter.pid, signal.SIGSTOP)
                _, how = os.waitpid(counter.pid, os.WUNTRACED)
                self.assertTrue(os.WIFSTOPPED(how))
                self.assertIn(status(counter.pid, "State")[0], "Tt")
                seen = len(session.records)
                os.kill(counter.pid, signal.SIGCONT)
                _, how = os.waitpid(counter.pid, os.WCONTINUED)
                self.assertTrue(os.WIFCONTINUED(how))
                session.wait_for_records(seen + 50)
                self.assertEqual(session.detach(), 0)
            counter.assert_unharmed(self)

    def test_stopped_process_stays_stopped(self):
        with Counter() as counter:
            os.kill(counter.pid, signal.SIGSTOP)
            os.waitpid(counter.pid, os.WUNTRACED)
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   armed=counter.site) as session:
                self.assertEqual(session.detach(), 0, session.program.err)
                self.assertEqual(session.records, [])
            self.assertEqual(status(counter.pid, "State")[0], "T")
            os.kill(counter.pid, signal.SIGCONT)
            counter.assert_unharmed(self)


class SavedActions(unittest.TestCase):
    """A program that saves its action for SIGTRAP while ours stands there."""

    def begin(self, *options):
        path = target("actions")
        self.program = Program([path, *options])
        self.addCleanup(self.program.__exit__)
        self.program.wait_for("ready\n")
        site = maps.load_base(self.program.pid, path) + elf.load(str(path)).symbols["work"].address
        self.attached = probectl.Attached(self.program.pid, [f"p:a/w {path}:work"], armed=site)

    def say(self, byte, chained, first=0):
        self.program.say(byte)
        self.program.wait_for(f"{byte} chained {chained} first {first}\n")

    def test_calls_it_with_us_and_without(self):
        self.begin()
        with self.attached:
            self.say("s", 0)
            self.say("c", 1)
            self.say("t", 2)
            self.assertEqual(self.attached.detach(), 0)
        self.say("c", 3)
        self.say("t", 4)
        self.assertEqual(self.program.finish(10), 0)

    def test_puts_it_back_without_us(self):
        self.begin()
        with self.attached:
            self.say("s", 0)
            self.assertEqual(self.attached.detach(), 0)
        self.say("r", 0)
        self.program.say("t")
        self.assertEqual(self.program.finish(10, close_input=False), -signal.SIGTRAP)

    def test_saves_its_own_handler(self):
        self.begin("handler")
        with self.attached:
            self.say("s", 0, 0)
            self.say("c", 1, 1)
            self.say("t", 2, 2)
            self.assertEqual(self.attached.detach(), 0)
        self.say("c", 3, 3)
        self.say("t", 4, 4)
        self.say("r", 4, 4)
        self.say("t", 4, 5)
        self.say("c", 4, 6)
        self.assertEqual(self.program.finish(10), 0)

    def test_keeps_its_handler(self):
        self.begin("handler")
        with self.attached:
            self.say("c", 0, 1)
            self.assertEqual(self.attached.detach(), 0)
        self.say("c", 0, 2)
        self.say("t", 0, 3)
        self.assertEqual(self.program.finish(10), 0)


class Threads(unittest.TestCase):
    def count_with(self, name, arguments, expected):
        path = target(name)
        with Program([path, *arguments, "wait"]) as program:
            program.wait_for("ready")
            site = maps.load_base(program.pid, path) + elf.load(str(path)).symbols["step"].address
            with probectl.Attached(program.pid, [f"p:e/w {path}:step", f"r:e/x {path}:step"],
                                   armed=site) as session:
                program.say("\n")
                self.assertEqual(program.finish(60, close_input=False), 0)
                session.finish(30)
                counts = trace.counts(session.records)
            self.assertTrue(program.out.split("\n")[1].startswith(f"calls {expected}"))
            self.assertEqual(counts, {"w": expected, "x": expected}, session.program.err)
            return session

    def test_32_threads_on_one_function(self):
        self.count_with("threads", ["32", "300"], 9600)

    def test_short_threads_call_once(self):
        self.count_with("churn", ["1200"], 1200)

    def test_attach_to_threads_that_run_and_detach(self):
        path = target("threads")
        with Program([path, "16", "0", "until"]) as program:
            program.wait_for("ready")
            self.assertEqual(len(threads(program.pid)), 17)
            seen = set()
            for _ in range(3):
                with probectl.Attached(program.pid, [f"p:e/w {path}:step"], "--count",
                                       "500") as session:
                    self.assertEqual(session.finish(20), 0, session.program.err)
                    self.assertEqual(len(session.records), 500)
                    seen |= {record.pid for record in session.records}
                wait_until(lambda: is_running_free(program.pid), 5, "free")
                self.assertEqual(maps.changed_text(program.pid), [])
            self.assertGreater(len(seen), 1)  # one thread can make all 500 of a round in one turn
            program.say("\n")
            self.assertEqual(program.finish(60, close_input=False), 0)
            self.assertTrue(program.out.endswith("sum ok\n"), program.out)


class Blocked(unittest.TestCase):
    def test_system_calls_are_not_interrupted(self):
        """By attaching, by detaching, and by hits of another thread."""
        path = target("blocked")
        with Program([path, "wait"]) as program:
            program.wait_for("ready")
            site = maps.load_base(program.pid, path) + elf.load(str(path)).symbols["work"].address
            for _ in range(3):
                with probectl.Attached(program.pid, ["p:e/s libc.so.6:pthread_kill",
                                                     f"p:e/w {path}:work", f"r:e/x {path}:work"],
                                       armed=site) as session:
                    session.wait_for_records(100)
                    self.assertEqual(session.detach(), 0, session.program.err)
            wait_until(lambda: is_running_free(program.pid), 5, "free")
            self.assertEqual(maps.changed_text(program.pid), [])
            program.say("\n")
            self.assertEqual(program.finish(60, close_input=False), 0)
            lines = program.out.split("\n")[1:-1]
            self.assertEqual(len(lines), 40)
            self.assertEqual([line for line in lines
                              if not line.endswith((" ok", " is not here"))], [])


if __name__ == "__main__":
    unittest.main()
