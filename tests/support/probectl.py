"""Running probectl: once, or as a session that is attached to a program."""

import json
import os
import tempfile
from pathlib import Path

from support import trace
from support.paths import PROBECTL
from support.process import Program, interrupt, status, threads
from support.wait import wait_until


def environment():
    """Our environment without anything that would lead probectl to somebody else's daemon."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PROBED_")}


def probectl(*words, seconds=30.0, stdin=None, address=None):
    """Runs probectl to its end; the result has `code`, `out` and `err`."""
    env = environment()
    if address:
        env["PROBED_ADDRESS"] = address
    with Program([PROBECTL, *words], env=env) as program:
        if stdin is not None:
            program.say(stdin)
        program.code = program.finish(seconds)
        return program


class Stream:
    """A probectl that writes events to a file of its own: the base of `run` and `attach`."""

    def __init__(self, verb, definitions, options=(), command=(), env=None, address=None,
                 output_format="trace", **program_options):
        self._folder = tempfile.TemporaryDirectory(prefix="probed-test-")
        folder = Path(self._folder.name)
        self.output = folder / "events"
        (folder / "definitions").write_text("".join(line + "\n" for line in definitions),
                                            "latin-1")
        words = [PROBECTL, verb, *options, "--format", output_format,
                 "-f", folder / "definitions", "-o", self.output]
        env = dict(environment() if env is None else env)
        if address:
            env["PROBED_ADDRESS"] = address
        self.program = Program([*words, *(["--", *command] if command else [])], env=env,
                               **program_options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.__exit__()
        self._folder.cleanup()

    @property
    def text(self):
        return self.output.read_text("latin-1") if self.output.exists() else ""

    @property
    def records(self):
        return trace.records(self.text)

    @property
    def objects(self):
        """The objects of --format json."""
        return [json.loads(line) for line in self.text.splitlines()]

    def _has_records(self, count):
        """Of a flood, only as much is read as that many records take, mostly."""
        if not self.output.exists():
            return False
        with open(self.output, encoding="latin-1") as file:
            beginning = file.read(256 * (count + 8))
            return len(trace.records(beginning)) >= count or \
                len(trace.records(beginning + file.read())) >= count

    def wait_for_records(self, count, seconds=15):
        wait_until(lambda: self._has_records(count) or self.program.process.poll() is not None,
                   seconds, f"{count} records; {self.program.err}")
        assert self._has_records(count), f"only {len(self.records)} records; {self.program.err}"

    def finish(self, seconds=60):
        return self.program.finish(seconds)


def run(definitions, command, *options, **more):
    """probectl run: the command's input and output are the program's own."""
    return Stream("run", definitions, options, command, **more)


class Attached(Stream):
    """probectl attach, entered only when it says so, the target is traced and a breakpoint or a jump
    stands at `armed` (an address, when given)."""

    def __init__(self, pid, definitions, *options, armed=None, **more):
        super().__init__("attach", definitions, ["--pid", str(pid), *options], **more)
        self.pid = pid
        self._armed = armed

    def __enter__(self):
        def armed():
            if self.program.process.poll() == 0:
                return True  # saw its --count already
            if self.program.process.poll() is not None:
                raise AssertionError(f"attach ended ({self.program.process.returncode}): "
                                     f"{self.program.err}")
            return any(int(status(tid, "TracerPid") or 0) for tid in threads(self.pid)) and \
                "attached to" in self.program.err and self._is_armed()
        try:
            wait_until(armed, 20, f"attach to {self.pid}; {self.program.err}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _is_armed(self):
        if self._armed is None:
            return True
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self._armed)
            return memory.read(1) in (b"\xcc", b"\xe9", b"\xeb")

    def detach(self, seconds=20):
        """Ctrl-C; returns the exit code."""
        interrupt(self.program)
        return self.program.finish(seconds, close_input=False)
