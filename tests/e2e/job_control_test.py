"""Jobs of an interactive shell: Ctrl-Z, fg and bg do to a probed program what they do to any other,
and signals in masses arrive, each once and in order."""

import os
import signal
import tempfile
import threading
import unittest
from pathlib import Path

from support import elf, maps, probectl, trace
from support.daemon import Daemon
from support.paths import PROBECTL, target
from support.process import Program, is_running_free, run, status
from support.wait import wait_until
from terminal import Terminal

PROMPT = "ready> "
RATE = ("--rate", "300")  # enough to see whether there are any


class Shell(Terminal):
    """bash with a prompt, and a folder with a fifo that its jobs read from."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="probed-jobs-")
        self.folder = Path(self._folder.name)
        self.fifo = self.folder / "fifo"
        os.mkfifo(self.fifo)
        self._input = os.open(self.fifo, os.O_RDWR)
        super().__init__(["/usr/bin/bash", "--norc", "--noprofile", "-i"],
                         {"PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": PROMPT,
                          "HISTFILE": "/dev/null"})
        self.expect(PROMPT)

    def __exit__(self, *what):
        super().__exit__(*what)
        os.close(self._input)
        self._folder.cleanup()

    def end_input(self):
        os.write(self._input, b"x")

    def does(self, line, answer):
        """Types a line, and waits for what stands in the answer and the next prompt."""
        self.type(line + "\n")
        self.expect(line)  # its echo
        self.expect(answer)
        self.expect(PROMPT)

    def stop_job(self):
        self.type("\x1a")
        self.expect("Stopped")
        self.expect(PROMPT)

    def leave(self, case):
        self.type("exit 5\n")
        case.assertEqual(self.finish(), 5, self.text)


def is_stopped(pid):
    return (status(pid, "State") or "?")[0] in "Tt"


class JobControl(unittest.TestCase):
    def start_counter(self, shell):
        shell.type(f"{target('counter')} < fifo\n".replace("fifo", str(shell.fifo)))
        shell.expect("\nready")
        wait_until(lambda: shell.front().startswith("counter"), 10, "the job in front")
        return shell.front_pid()

    def grows(self, session):
        session.wait_for_records(len(session.records) + 20)

    def test_attached_job(self):
        path = target("counter")
        with Shell() as shell:
            pid = self.start_counter(shell)
            site = maps.load_base(pid, path) + elf.load(str(path)).symbols["work"].address
            definitions = [f"p:e/w {path}:work", f"r:e/x {path}:work"]
            with probectl.Attached(pid, definitions, *RATE, armed=site) as session:
                self.grows(session)
                shell.stop_job()
                self.assertTrue(is_stopped(pid))
                shell.does("jobs", "Stopped")
                shell.does("bg", "counter")
                self.grows(session)
                shell.does("jobs", "Running")
                shell.type("fg\n")
                wait_until(lambda: shell.front().startswith("counter"), 10, "in front")
                self.grows(session)
                shell.stop_job()
                shell.does("kill -CONT %1; sleep 0.1; jobs", "Running")
                self.grows(session)
                shell.does("kill -STOP %1; echo sent", "\r\nsent")
                wait_until(lambda: is_stopped(pid), 10, "stopped")
                self.assertEqual(session.detach(), 0, session.program.err)
            shell.does("jobs", "Stopped")
            self.assertTrue(is_stopped(pid))
            self.assertEqual(maps.changed_text(pid), [])
            with probectl.Attached(pid, definitions, *RATE, armed=site) as session:
                # It makes system calls for us, still, and stops again after each.
                wait_until(lambda: is_stopped(pid), 10, "stopped again")
                wait_until(lambda: is_stopped(pid), 10, "stopped again")
                shell.type("fg\n")
                self.grows(session)
                self.assertEqual(session.detach(), 0, session.program.err)
            wait_until(lambda: is_running_free(pid), 10, "free")
            self.assertEqual(maps.changed_text(pid), [])
            shell.end_input()
            shell.expect("wrong 0")
            shell.does("echo status $?", "status 0")
            shell.leave(self)

    def test_job_that_is_run_with_probes(self):
        path = target("counter")
        with Shell() as shell:
            events = shell.folder / "events"
            shell.type(f"{PROBECTL} run {' '.join(RATE)} -e 'p:e/w {path}:work' "
                       f"-e 'r:e/x {path}:work' -o {events} -- {path} < {shell.fifo}\n")
            shell.expect("\nready", 30)

            def grows():
                seen = events.stat().st_size
                wait_until(lambda: events.stat().st_size > seen + 1024, 15, "more hits")
            grows()
            for _ in range(3):
                shell.stop_job()
                shell.does("jobs", "Stopped")
                shell.does("bg", "probectl")
                shell.does("jobs", "Running")
                grows()
                shell.type("fg\n")
                wait_until(lambda: shell.front() == "probectl", 10, "in front")
                grows()
            shell.end_input()
            numbers = []
            for before, behind in (("calls ", " wrong 0"), ("p:e/w  hits ", "  missed 0"),
                                   ("r:e/x  hits ", "  missed 0")):
                shell.expect(before)
                shell.expect(behind)
                numbers.append(int(shell.before.split()[0]))
            self.assertEqual(len(set(numbers)), 1, numbers)
            shell.does("echo status $?", "status 0")
            shell.leave(self)

    def test_background_job_that_reads_the_terminal(self):
        with Shell() as shell:
            events = shell.folder / "events"
            shell.type(f"{PROBECTL} run -q -e 'p:e/r libc.so.6:read' -o {events} -- cat &\n")
            shell.expect(PROMPT)

            def stopped():
                shell.type("jobs\n")
                shell.expect("jobs")
                shell.expect(PROMPT)
                return "Stopped" in shell.before
            wait_until(stopped, 30, "stopped by its read")
            shell.type("fg\n")
            wait_until(lambda: shell.front() == "probectl", 10, "in front")
            shell.type("through the cat\n")
            shell.expect("through the cat\r\nthrough the cat")
            shell.type("\x04")
            shell.expect(PROMPT)
            shell.does("echo status $?", "status 0")
            shell.leave(self)

    def test_probed_shell_suspends_itself(self):
        with Shell() as shell:
            shell.type("PS1='inner> ' bash --norc --noprofile -i\n")
            shell.expect("inner> ")
            pid = shell.front_pid()
            with probectl.Attached(pid, ["p:e/p /usr/bin/bash:readline",
                                         "r:e/r /usr/bin/bash:readline"]) as session:
                wait_until(lambda: maps.changed_text(pid), 10, "armed")
                for _ in range(3):
                    shell.type("suspend\n")
                    shell.expect("Stopped")
                    shell.expect(PROMPT)
                    shell.type("fg\n")
                    shell.expect("inner> ")
                shell.type("true\n")
                shell.expect("inner> ")
                session.wait_for_records(4)
                self.assertEqual(session.detach(), 0, session.program.err)
            shell.type("exit 3\n")
            shell.expect(PROMPT)
            shell.does("echo status $?", "status 3")
            shell.leave(self)


class Masses(unittest.TestCase):
    """With breakpoints, and with jumps."""

    def each(self, check):
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization), Daemon() as daemon:
                daemon.optimize(optimization)
                check(daemon)

    def test_stop_and_continue_during_hits(self):
        self.each(self.stop_and_continue)

    def stop_and_continue(self, daemon):
        path = target("threads")
        with Program([path, "8", "600", "wait"]) as program:
            program.wait_for("ready")
            site = maps.load_base(program.pid, path) + elf.load(str(path)).symbols["step"].address
            with probectl.Attached(program.pid, [f"p:e/w {path}:step", f"r:e/x {path}:step"],
                                   armed=site, address=daemon.address) as session:
                daemon.settled_sites()
                over = threading.Event()

                def storm():
                    while not over.is_set():
                        for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP,
                                       signal.SIGCONT):
                            program.signal(number)
                thread = threading.Thread(target=storm)
                thread.start()
                try:
                    program.say("\n")
                    session.wait_for_records(4800, 60)
                finally:
                    over.set()
                    thread.join()
                program.signal(signal.SIGCONT)
                self.assertEqual(program.finish(60, close_input=False), 0, program.err)
                session.finish(30)
                self.assertEqual(trace.counts(session.records), {"w": 4800, "x": 4800})
            self.assertIn("calls 4800", program.out)

    def test_queues_of_signals(self):
        self.each(self.queues)

    def queues(self, daemon):
        path, count = target("queues"), 1000
        native = run([path, str(count)])
        self.assertEqual(native.code, 0)
        with probectl.run([f"{kind}:e/{kind}_{name} {path}:{name}" for kind in "pr"
                           for name in ("work", "take", "send")] +
                          ["p:e/n libc.so.6:sigqueue", "p:e/m libc.so.6:sigwaitinfo"],
                          [path, str(count)], address=daemon.address) as session:
            code = session.finish(60)
            self.assertEqual((code, session.program.out), (0, native.out), session.program.err)
            counts = trace.counts(session.records)
        works = int(session.program.err.split("works ")[1].split()[0])
        for kind in "pr":
            self.assertEqual(counts[f"{kind}_take"], 4 * 2 * count)
            self.assertEqual(counts[f"{kind}_send"], 4 * 2 * count)
            self.assertEqual(counts[f"{kind}_work"], works)


if __name__ == "__main__":
    unittest.main()
