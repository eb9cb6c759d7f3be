"""A daemon of the benchmark's own, on a socket of its own, as a scope."""

import json
import os
import re
import subprocess
import tempfile
import time


class Daemon:
    def __init__(self, build):
        self.build = build
        self.folder = tempfile.TemporaryDirectory(prefix="probed-bench-")
        self.address = f"unix://{self.folder.name}/probed.sock"
        self.process = subprocess.Popen([f"{build}/probed", "--listen", self.address],
                                        stderr=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + 20
        while self.probectl("status", "--quiet", check=False).returncode != 0:
            if time.monotonic() > deadline:
                raise TimeoutError("the daemon does not answer")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()

    def probectl(self, verb, *arguments, check=True, text=None):
        return subprocess.run(
            [f"{self.build}/probectl", verb, "--address", self.address, *map(str, arguments)],
            input=text, capture_output=True, text=True, check=check, timeout=120)

    def rows(self, verb, *arguments):
        """What `verb --json` prints, one object a line."""
        output = self.probectl(verb, "--json", *arguments).stdout
        return [json.loads(line) for line in output.splitlines()]

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Attached:
    """probectl attached to a program with one definition line, as a scope that begins when `byte`
    stands at the probe: a breakpoint's or a jump's."""

    BREAKPOINT, JUMP = b"\xcc", b"\xe9"

    def __init__(self, daemon, program, definition, byte=BREAKPOINT):
        self.daemon = daemon
        self.program = program
        self.definition = definition
        self.byte = byte
        self.process = subprocess.Popen(
            [f"{daemon.build}/probectl", "attach", "--address", daemon.address, "--pid",
             str(program.pid), "-e", definition, "-o", os.devnull],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        deadline = time.monotonic() + 20
        while not self.armed():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"not armed: {self.definition}: {self.process.stderr.read()}")
            time.sleep(0.01)
        return self

    def armed(self):
        offset = int(re.search(r" /\S+:(0x[0-9a-f]+)", self.definition).group(1), 16)
        return self.program.byte_at(offset) == self.byte

    def mechanism(self):
        return self.daemon.rows("sites")[0]["mechanism"]

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=30)


def function_offsets(path, wanted):
    """File offsets of exported functions, by nm; text offset and address are the same in PIC files
    whose first segment starts at 0, which the callers' files are."""
    text = subprocess.run(["nm", "-D", "--defined-only", os.path.realpath(path)],
                          capture_output=True, text=True, check=True).stdout
    offsets = sorted({int(line.split()[0], 16) for line in text.splitlines()
                      if len(line.split()) == 3 and line.split()[1] == "T"})
    return offsets[:wanted]
