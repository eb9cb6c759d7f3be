"""The same program under other tracers: nanoseconds per call, infinite where one is not there."""

import contextlib
import itertools
import math
import os
import shutil
import subprocess
import tempfile
import time

from .programs import Program, per_call, symbol

KERNEL_CALLS = 1000
SLOW_CALLS = 50  # for tracers that take hundreds of microseconds
TRACING = "/sys/kernel/tracing"
SERIAL = itertools.count()


def write_control(path, text):
    """tracefs control files know no lseek, which Python's append mode insists on."""
    control = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(control, text.encode())
    finally:
        os.close(control)


def has_uprobes():
    return os.path.exists(f"{TRACING}/uprobe_events")


@contextlib.contextmanager
def kernel_probe(kind, where, arguments):
    """A kernel uprobe that is on, in a group and an instance of its own; both are taken back. Its
    event, which is what the scope gives, has the group's name."""
    group = f"probed_bench_{os.getpid()}_{next(SERIAL)}"
    instance = f"{TRACING}/instances/{group}"
    with contextlib.ExitStack() as undo:
        write_control(f"{TRACING}/uprobe_events", f"{kind}:{group}/{group} {where} {arguments}\n")
        undo.callback(write_control, f"{TRACING}/uprobe_events", f"-:{group}/{group}\n")
        os.mkdir(instance)
        undo.callback(os.rmdir, instance)
        write_control(f"{instance}/events/{group}/{group}/enable", "1")
        undo.callback(write_control, f"{instance}/events/{group}/{group}/enable", "0")
        yield group


def kernel_hits(event):
    with open(f"{TRACING}/uprobe_profile", encoding="utf-8") as profile:
        return next(int(line.split()[-1]) for line in profile if line.split()[-2] == event)


def kernel(hot, arguments):
    if not has_uprobes():
        return math.inf
    with kernel_probe("p", f"{hot}:{symbol(hot, 'hot'):#x}", arguments), \
            Program(hot, KERNEL_CALLS) as program:
        return per_call(program)


def slow_tracer(hot, command):
    """Cost per call under a tracer that attaches by pid, from when its int3 is there."""
    offset = symbol(hot, "hot")
    with Program(hot, SLOW_CALLS) as program, tempfile.TemporaryFile() as output:
        tracer = subprocess.Popen(command(program.pid), stdout=output, stderr=output,
                                  stdin=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 30
            while program.byte_at(offset) != b"\xcc":
                if tracer.poll() is not None or time.monotonic() > deadline:
                    return math.inf
                time.sleep(0.05)
            return per_call(program)
        finally:
            tracer.terminate()
            try:
                tracer.wait(10)
            except subprocess.TimeoutExpired:
                tracer.kill()
                tracer.wait()


def gdb(hot):
    if not shutil.which("gdb"):
        return math.inf
    return slow_tracer(hot, lambda pid: [
        "gdb", "-q", "-nx", "-p", str(pid), "-ex", "set breakpoint always-inserted on",
        "-ex", 'dprintf *hot,"%lu %s\\n",$rdi,(char*)$rsi', "-ex", "continue"])


def ltrace(hot):
    if not shutil.which("ltrace"):
        return math.inf
    return slow_tracer(hot, lambda pid: ["ltrace", "-x", "hot", "-L", "-p", str(pid)])
