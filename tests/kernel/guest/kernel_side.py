"""What the checks of kernel-side definitions share: a program that opens files, a daemon, and what
is in tracefs."""

import json
import os
import re
import tempfile
import unittest
from pathlib import Path

from support import maps, probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program
from support.tracefs import ROOT, Tracefs
from support.wait import wait_until

NO_SUCH_FILE = -2


def only(pid):
    return ("--filter", f"common_pid == {pid}")


def readme():
    """What this kernel says that it has."""
    return (ROOT / "README").read_text()


def define(line):
    """Whether dynamic_events takes the line; never truncates."""
    fd = os.open(ROOT / "dynamic_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, line.encode() + b"\n")
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def instances(pid):
    return list(ROOT.glob(f"instances/probed-{pid}-*"))


def definitions(pid):
    lines = (ROOT / "dynamic_events").read_text("latin-1").splitlines()
    return [line for line in lines if f"probed_{pid}_" in line]


def kernel_counts(pid):
    """{event: (hits, misses)} of what the daemon has defined, from kprobe_profile. Its lines are in
    the order of kprobe_events and have no groups."""
    lines = (ROOT / "kprobe_events").read_text().splitlines()
    profile = (ROOT / "kprobe_profile").read_text().splitlines()
    counts = {}
    for line, numbers in zip(lines, profile):
        if f"probed_{pid}_" in line:
            event, hits, misses = numbers.split()
            counts[event] = (int(hits), int(misses))
    return counts


class Opens:
    """opens.c, running in a folder of its own."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="opens-")
        self.there, self.missing = (f"{self._folder.name}/{name}" for name in ("there", "missing"))
        Path(self.there).touch()
        self.path = target("opens")
        self.program = Program([self.path, self._folder.name])
        self.program.wait_for("ready")
        self.pid = self.program.pid
        self._answers = 0
        return self

    def __exit__(self, *_):
        self.program.__exit__()
        self._folder.cleanup()

    def open(self, times):
        """Returns what the program has got for the file that is there."""
        self.program.say(f"{times}\n")
        self._answers += 1
        answers = wait_until(lambda: re.findall(r"opened (\d+) there (-?\d+) missing (-?\d+)\n",
                                                self.program.out)[self._answers - 1:],
                             20, "the program's answer")
        return int(answers[0][1])

    def assert_unharmed(self, case):
        case.assertEqual(maps.changed_text(self.pid), [])
        case.assertEqual(self.program.finish(20), 0)


class Case(unittest.TestCase):
    """A daemon for each test; what it has left when it has been told to end is nothing."""

    daemon_options = ()

    def setUp(self):
        self.before = self.others()
        self.daemon = Daemon(options=self.daemon_options)
        self.daemon.__enter__()
        self.pid = self.daemon.program.pid
        self.addCleanup(self._end)

    def _end(self):
        self.daemon.__exit__()
        self.assertEqual(self.others(), self.before)

    @staticmethod
    def others():
        """What there is in tracefs that belongs to nobody's daemon."""
        lines = (ROOT / "dynamic_events").read_text("latin-1").splitlines()
        return ([line for line in lines if "probed_" not in line],
                sorted(path.name for path in (ROOT / "instances").iterdir()
                       if not path.name.startswith("probed-")),
                (ROOT / "tracing_on").read_text(), (ROOT / "current_tracer").read_text(),
                (ROOT / "events/enable").read_text())

    def run_ok(self, *words):
        answer = self.daemon.run(*words, seconds=60)
        self.assertEqual(answer.code, 0, f"{words}: {answer.err}")
        return answer

    def refused(self, *words, code=2):
        answer = self.daemon.run(*words, seconds=60)
        self.assertEqual(answer.code, code, f"{words}: {answer.out}{answer.err}")
        return answer

    def objects(self, *words):
        return [json.loads(line) for line in self.run_ok(*words, "--json").out.splitlines()]

    def define(self, *lines, options=()):
        return self.objects("define", *(word for line in lines for word in ("-e", line)), *options)

    def profile(self):
        return {probe["event"]: probe for probe in self.objects("profile")}

    def start_tracing(self, lines, *options, output_format="json"):
        """probectl trace, once its probes are on."""
        session = probectl.Stream("trace", lines, options, output_format=output_format,
                                  address=self.daemon.address)
        session.__enter__()
        self.addCleanup(session.__exit__)

        def is_on():
            if session.program.process.poll() is not None:
                raise AssertionError(f"trace ended: {session.program.err}")
            switches = [path for instance in instances(self.pid)
                        for path in instance.glob("events/*/*/enable")
                        if path.read_text().startswith("1")]
            return len(switches) >= len(lines)
        wait_until(is_on, 30, "the events are on")
        return session

    def end_tracing(self, session):
        session.program.signal(2)
        self.assertEqual(session.program.finish(30, close_input=False), 0, session.program.err)

    def assert_same(self, got, expected):
        """Of long lists: unittest takes minutes to put their differences into words."""
        for index, (one, other) in enumerate(zip(got, expected)):
            self.assertEqual(one, other, f"at {index}, behind {got[max(0, index - 3):index]}")
        self.assertEqual(len(got), len(expected))

    def both_texts(self, lines, opens, times):
        """Records of what `opens` does, as probectl shows them and as the kernel's own trace does.

        The same events are on in an instance of the test's, and not the same lines a second time:
        two kretprobes on one function would see each other.
        """
        with Tracefs() as kernel:
            session = self.start_tracing(lines, *only(opens.pid), output_format="trace")
            events = [path.parent for path in kernel.instance.glob("events/*/*/enable")
                      if f"probed_{self.pid}_" in path.parent.parent.name]
            self.assertEqual(len(events), len(lines))
            for event in events:
                (event / "filter").write_text(f"common_pid == {opens.pid}")
                (event / "enable").write_text("1")
            opens.open(times)
            for event in events:
                (event / "enable").write_text("0")
            theirs = kernel.records()  # before the definitions go, and with them all records
            self.end_tracing(session)
        return session.records, theirs

    def assert_nothing_left(self):
        self.assertEqual((instances(self.pid), definitions(self.pid)), ([], []))
