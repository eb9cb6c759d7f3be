"""Every exit status of the table in probectl(1), met on purpose."""

import os
import signal
import unittest
from pathlib import Path

from attach_test import Counter
from support import probectl
from support.daemon import Daemon
from support.paths import PROBECTL
from support.process import Program, status
from support.wait import wait_until

(OK, FAILURE, USAGE, CONNECT, PERMISSION, NOT_FOUND, PRECONDITION, PARTIAL, TIMEOUT, CANNOT_EXECUTE,
 NO_COMMAND, INTERRUPTED) = 0, 1, 2, 3, 4, 5, 6, 7, 124, 126, 127, 130


class ExitStatus(unittest.TestCase):
    def expect(self, code, *words, pattern="(?s).*", **more):
        result = probectl.probectl(*words, **more)
        self.assertEqual(result.code, code, result.err)
        self.assertRegex(result.err, pattern)
        return result

    def attach(self, code, definition, *options, **more):
        with Counter() as counter:
            definition = definition.replace("PATH", str(counter.path))
            result = self.expect(code, "attach", "--pid", str(counter.pid), "--duration", "0.2", "-e",
                                 definition, *options, **more)
            counter.assert_unharmed(self)
            return result

    def test_what_a_definition_names_is_missing(self):
        self.attach(NOT_FOUND, "p:e/x /nonexistent/file:0x10", pattern="FILE_NOT_FOUND")
        self.attach(NOT_FOUND, "p:e/x /etc/hostname/file:0x10", pattern="FILE_NOT_FOUND")
        self.attach(NOT_FOUND, "p:e/x libnothing.so:open", pattern="no file called libnothing.so")
        self.attach(NOT_FOUND, "p:e/x PATH:wrok", pattern="SYMBOL_NOT_FOUND")
        self.expect(NOT_FOUND, "run", "-e", "p:e/x /nonexistent/file:0x10", "--", "true")
        self.expect(NOT_FOUND, "explain", "/nonexistent/file:0x10", pattern="/nonexistent/file")
        self.expect(NOT_FOUND, "explain", "/usr/bin/bash:raedline", pattern="readline")

    def test_how_a_definition_is_written_is_wrong(self):
        self.attach(USAGE, "p:e/x PATH:work %zz", pattern="BAD_REG_NAME")
        self.attach(USAGE, "p:e/x PATH:0xffffffff", pattern="OFFSET_PAST_EOF")
        self.attach(USAGE, "p:e/x PATH", pattern="PLACE_WITHOUT_OFFSET")
        self.attach(USAGE, "p:e/x /tmp:0x10", pattern="NO_REGULAR_FILE")

    def test_what_is_there_already(self):
        self.attach(PRECONDITION, "p:e/x PATH:work", "-e", "r:e/x /usr/bin/bash:0x31000",
                    pattern="DIFF_PROBE_TYPE")
        self.attach(PRECONDITION, "p:e/x /usr/bin/bash:main", "--require-armed",
                    pattern="FILE_NOT_MAPPED")

    def test_some_of_several(self):
        free = int(Path("/proc/sys/kernel/pid_max").read_text()) - 7
        with Counter() as counter:
            self.expect(PARTIAL, "attach", "--pid", f"{counter.pid},{free}", "--duration", "0.2",
                        "-e", f"p:e/x {counter.path}:work", pattern="PROCESS_NOT_FOUND")
            counter.assert_unharmed(self)

    def test_commands(self):
        self.expect(NO_COMMAND, "run", "--", "no-such-command-here")
        self.expect(CANNOT_EXECUTE, "run", "--", "/etc/passwd")
        self.expect(OK, "run", "--", "true")
        self.expect(77, "run", "--", "sh", "-c", "exit 77")
        self.expect(128 + signal.SIGKILL, "run", "--", "sh", "-c", "kill -9 $$")

    def test_ordinary_ends(self):
        for option in (("--duration", "0.2"), ("--count", "3")):
            with Counter() as counter:
                self.expect(OK, "attach", "--pid", str(counter.pid), *option, "-e",
                            f"p:e/x {counter.path}:work")
                counter.assert_unharmed(self)

    def test_output_that_cannot_be_written(self):
        self.attach(FAILURE, "p:e/x PATH:work", "-o", "/dev/full", pattern="No space left")


class Unresponsive(unittest.TestCase):
    """A daemon that is stopped: every wait for it ends."""

    def test_timeout(self):
        with Daemon() as daemon:
            daemon.program.signal(signal.SIGSTOP)
            wait_until(lambda: status(daemon.program.pid, "State").startswith("T"), 10)
            for words in (["list"], ["targets"], ["status"], ["symbols", "--path", "/bin/sh"],
                          ["attach", "--pid", str(os.getpid())]):
                with self.subTest(words):
                    result = daemon.run(*words, "--timeout", "0.3")
                    self.assertEqual(result.code, TIMEOUT, result.err)
                    self.assertIn("DEADLINE_EXCEEDED", result.err)
            daemon.program.signal(signal.SIGCONT)
            self.assertEqual(daemon.run("status").code, OK)

    def test_interrupted_clean_up(self):
        with Daemon() as daemon, Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   address=daemon.address, armed=counter.site) as session:
                session.wait_for_records(5)
                daemon.program.signal(signal.SIGSTOP)
                self.assertEqual(self.interrupt_until_it_ends(session.program), INTERRUPTED)
                self.assertIn("cleans up without us", session.program.err)
                daemon.program.signal(signal.SIGCONT)
            counter.assert_unharmed(self)

    def test_interrupted_before_there_is_anything(self):
        """The daemon never answers the attach: Ctrl-C is heard all the same."""
        with Daemon() as daemon, Counter() as counter:
            daemon.program.signal(signal.SIGSTOP)
            wait_until(lambda: status(daemon.program.pid, "State").startswith("T"), 10)
            for words in (["attach", "--pid", str(counter.pid), "-e", f"p:e/w {counter.path}:work"],
                          ["run", "--", "true"]):
                with self.subTest(words):
                    env = {**probectl.environment(), "PROBED_ADDRESS": daemon.address}
                    with Program([PROBECTL, *words], env=env) as program:
                        wait_until(lambda: self.blocks_interrupts(program.pid), 10)
                        self.assertEqual(self.interrupt_until_it_ends(program), INTERRUPTED)
            daemon.program.signal(signal.SIGCONT)
            counter.assert_unharmed(self)

    def test_interrupted_wait_for_a_command(self):
        """The program does not mind Ctrl-C: the second one ends probectl alone."""
        script = "trap '' INT TERM; echo ready; read line"
        with Program([PROBECTL, "run", "--", "sh", "-c", script],
                     env=probectl.environment()) as program:
            program.wait_for("ready")
            self.assertEqual(self.interrupt_until_it_ends(program), INTERRUPTED)

    @staticmethod
    def blocks_interrupts(pid):
        return int(status(pid, "SigBlk") or "0", 16) >> (signal.SIGINT - 1) & 1

    @staticmethod
    def interrupt_until_it_ends(program):
        """One that comes while another is pending counts for nothing."""
        def ended():
            if program.process.poll() is None:
                program.signal(signal.SIGINT)
            return program.process.poll() is not None
        wait_until(ended, 20, f"the end of {program.argv}")
        return program.finish(5, close_input=False)


if __name__ == "__main__":
    unittest.main()
