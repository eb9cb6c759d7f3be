"""bash's readline in a terminal: the first thing anybody tries."""

import os
import tempfile
import unittest
from pathlib import Path

from support import maps, probectl, trace
from support.paths import PROBECTL
from support.process import is_running_free
from support.wait import wait_until
from terminal import Terminal

DEFINITION = "r:readline /usr/bin/bash:readline line=+0($retval):string"


def shell_environment():
    return {"PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "ready> ", "HISTFILE": "/dev/null"}


class Bash(unittest.TestCase):
    def test_run_in_a_terminal(self):
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "events"
            with Terminal([PROBECTL, "run", "-e", DEFINITION, "-o", output, "--", "/usr/bin/bash",
                           "--norc", "--noprofile", "-i"], shell_environment()) as terminal:
                terminal.expect("ready> ", 30)
                terminal.type("echo $((40+2))\n")
                terminal.expect("\n42")
                terminal.type("tty | sed s/pts/yes/\n")
                terminal.expect("/dev/yes/")
                terminal.type("sleep 50\n")
                terminal.expect("sleep 50")
                wait_until(lambda: len(trace.records(output.read_text("latin-1"))) >= 3, 10)
                wait_until(lambda: terminal.front() == "sleep", 10)
                terminal.type("\x03")  # belongs to the program in front, not to the session
                terminal.expect("ready> ")
                terminal.type("exit 7\n")
                self.assertEqual(terminal.finish(), 7, terminal.text)
            lines = [r.arguments for r in trace.records(output.read_text("latin-1"))]
            self.assertEqual(lines, ['line="echo $((40+2))"', 'line="tty | sed s/pts/yes/"',
                                     'line="sleep 50"', 'line="exit 7"'])

    def test_attach_to_a_shell_and_leave_it(self):
        with Terminal(["/usr/bin/bash", "--norc", "--noprofile", "-i"],
                      shell_environment()) as terminal:
            terminal.expect("ready> ")
            with probectl.Attached(terminal.pid, [DEFINITION]) as session:
                wait_until(lambda: maps.changed_text(terminal.pid), 10, "the probe is in")
                # The call that waits for a line was made before the probe was there.
                terminal.type("true one\n")
                terminal.type("true two\n")
                terminal.type("true three\n")
                session.wait_for_records(2)
                self.assertEqual(session.detach(), 0, session.program.err)
                lines = [record.arguments for record in session.records]
            self.assertEqual(lines[-2:], ['line="true two"', 'line="true three"'])
            wait_until(lambda: is_running_free(terminal.pid), 5)
            self.assertEqual(maps.changed_text(terminal.pid), [])
            terminal.type("echo still $((1+1)) here\n")
            terminal.expect("still 2 here")
            terminal.type("exit 3\n")
            self.assertEqual(terminal.finish(), 3)


if __name__ == "__main__":
    os.environ.setdefault("TERM", "dumb")
    unittest.main()
