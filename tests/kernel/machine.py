"""Boots a kernel in an emulated machine, and takes its results from a serial line.

The first serial port is the console, kept in a log; the second carries the results, one a line:
    ok NAME
    skip NAME REASON
    fail NAME DETAIL
    done
"""

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

QEMU = "qemu-system-x86_64"


@dataclass
class Outcome:
    console: Path  # its log
    seconds: float = 0.0
    passed: list = field(default_factory=list)
    skipped: dict = field(default_factory=dict)  # name: reason
    failed: dict = field(default_factory=dict)  # name: detail
    done: bool = False

    def tail(self, lines=60):
        text = self.console.read_text("utf-8", "replace").replace("\r", "")
        return "\n".join(text.splitlines()[-lines:])


_BOOT_SECONDS = 120  # an emulated kernel that has not come up by then will not

STOOD_STILL = "the machine"  # in the place of a check's name


def run(kernel, initramfs, folder, *, append="", cpu="max", cpus=2, seconds=600):
    """Runs the machine until it powers itself off; returns what each serial port said, as files.

    Raises subprocess.TimeoutExpired after `seconds`, when it has been killed.
    """
    console, results = folder / "console.log", folder / "results"
    # Where the host is busy the kernel finds that its timer's interrupts do not come, and panics.
    append = f"console=ttyS0 panic=-1 quiet loglevel=4 no_timer_check {append}"
    command = [QEMU, "-accel", "tcg", "-m", "1024", "-cpu", cpu, "-smp", str(cpus),
               "-display", "none", "-monitor", "none", "-no-reboot", "-nodefaults",
               "-serial", f"file:{console}", "-serial", f"file:{results}",
               "-kernel", kernel.image, "-initrd", initramfs, "-append", append]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            _wait(process, console, seconds)
        finally:
            process.kill()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return console, results


def _wait(process, console, seconds):
    """Until it has ended; for the first word on its console not as long as for the last."""
    try:
        process.wait(min(seconds, _BOOT_SECONDS))
    except subprocess.TimeoutExpired:
        if seconds <= _BOOT_SECONDS or console.stat().st_size == 0:
            raise
        process.wait(seconds - _BOOT_SECONDS)


def boot(kernel, initramfs, folder, **options):
    """As run(), but takes the results to pieces and counts a machine that hangs as a failure."""
    outcome, started = Outcome(folder / "console.log"), time.monotonic()
    try:
        run(kernel, initramfs, folder, **options)
    except subprocess.TimeoutExpired as late:
        outcome.failed[STOOD_STILL] = f"did not power off within {late.timeout} s"
    outcome.seconds = time.monotonic() - started
    for line in (folder / "results").read_text("utf-8", "replace").splitlines():
        _take(outcome, line.rstrip("\r"))
    return outcome


def _take(outcome, line):
    verdict, name, detail = (line.split(" ", 2) + ["", ""])[:3]
    if verdict == "ok":
        outcome.passed.append(name)
    elif verdict == "skip":
        outcome.skipped[name] = detail
    elif verdict == "fail":
        outcome.failed[name] = detail
    elif verdict == "done":
        outcome.done = True
    else:
        print(f"not a result: {line!r}", file=sys.stderr)
