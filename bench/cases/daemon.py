"""A daemon of the benchmark's own, on a socket of its own, as a scope."""

import json
import os
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


def function_offsets(path, wanted):
    """File offsets of exported functions, by nm; text offset and address are the same in PIC files
    whose first segment starts at 0, which the callers' files are."""
    text = subprocess.run(["nm", "-D", "--defined-only", os.path.realpath(path)],
                          capture_output=True, text=True, check=True).stdout
    offsets = sorted({int(line.split()[0], 16) for line in text.splitlines()
                      if len(line.split()) == 3 and line.split()[1] == "T"})
    return offsets[:wanted]
