"""The kernel's own uprobes, in an instance and a group of our own."""

import os
import subprocess
import unittest
from pathlib import Path

from support import trace
from support.wait import wait_until

ROOT = Path("/sys/kernel/tracing")


def _mounted():
    if not (ROOT / "uprobe_events").exists():
        subprocess.run(["mount", "-t", "tracefs", "nodev", str(ROOT)], capture_output=True,
                       timeout=10, check=False)
    return (ROOT / "uprobe_events").exists() and os.access(ROOT / "uprobe_events", os.W_OK)


def in_its_dialect(line):
    """`line` with what this kernel lacks (before 6.2) replaced by what is as good."""
    readme = (ROOT / "README").read_text() if _mounted() else ", char,"
    if ", char," in readme:
        return line
    return line.replace(":char", ":u8").replace("$retvalx", "$retval")


class Tracefs:
    """Define, enable and read; leaving the context takes back everything that was added.

    Events are enabled one by one in the order they were defined, because that order decides which
    of several probes on one site runs first.
    """

    _serial = 0

    def __init__(self, buffer_kb=8192, definitions="uprobe_events"):
        """`definitions`: the file that they are written to."""
        if not _mounted():
            raise unittest.SkipTest("no tracefs with uprobe_events that this user may write")
        Tracefs._serial += 1
        self.group = f"pt{os.getpid()}_{Tracefs._serial}"
        self.instance = ROOT / "instances" / self.group
        self.buffer_kb = buffer_kb
        self.definitions = ROOT / definitions
        self.events = []

    def __enter__(self):
        self.instance.mkdir()
        self._write(self.instance / "buffer_size_kb", str(self.buffer_kb))
        return self

    def __exit__(self, *_):
        for event in self.events:
            self._try(self.instance / "events" / self.group / event / "enable", "0")
        self._try(self.definitions, f"-:{self.group}/\n")
        self.instance.rmdir()

    @staticmethod
    def _write(path, text):
        # O_APPEND without O_TRUNC: truncating uprobe_events would delete everybody's probes.
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, text.encode("latin-1"))
        finally:
            os.close(fd)

    def _try(self, path, text):
        try:
            self._write(path, text)
        except OSError:
            pass

    def define(self, line):
        """Defines `line`, whose event must be in this object's group. Raises OSError."""
        self._write(self.definitions, line + "\n")
        event = line.split()[0].split("/", 1)[1]
        if event not in self.events:
            self.events.append(event)

    def filter(self, event, expression):
        self._write(self.instance / "events" / self.group / event / "filter", expression)

    def enable(self, event):
        self._write(self.instance / "events" / self.group / event / "enable", "1")

    def enable_all(self):
        for event in self.events:
            self.enable(event)

    def disable_all(self):
        for event in self.events:
            self._write(self.instance / "events" / self.group / event / "enable", "0")

    def text(self):
        with open(self.instance / "trace", encoding="latin-1", newline="\n") as file:
            return file.read()

    def records(self, pid=None):
        return [r for r in trace.records(self.text()) if pid is None or r.pid == pid]

    def wait_for_records(self, count, pid=None, seconds=10):
        wait_until(lambda: len(self.records(pid)) >= count, seconds, f"{count} kernel records")
        return self.records(pid)

    def profile(self):
        """{event: hits} of our group's events, from uprobe_profile."""
        hits = {}
        with open(ROOT / "uprobe_profile", encoding="latin-1") as file:
            for line in file:
                path_event, count = line.rstrip("\n").rsplit(None, 1)
                event = path_event.split()[-1]
                if event in self.events:
                    hits[event] = hits.get(event, 0) + int(count)
        return hits

    def profile_lines(self):
        with open(ROOT / "uprobe_profile", encoding="latin-1", newline="\n") as file:
            return [line.rstrip("\n") for line in file
                    if any(f" {event} " in line for event in self.events)]

    def format(self, event):
        return (ROOT / "events" / self.group / event / "format").read_text("latin-1")

    def listing(self):
        text = (ROOT / "uprobe_events").read_text("latin-1")
        return [line for line in text.splitlines() if f":{self.group}/" in line]
