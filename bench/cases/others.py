"""The same program under other tracers: nanoseconds per call, infinite where one is not there."""

import math
import os
import shutil
import subprocess
import tempfile
import time

from .programs import Program, per_call, symbol

KERNEL_CALLS = 1000
SLOW_CALLS = 50  # for tracers that take hundreds of microseconds


def write_control(path, text):
    """tracefs control files know no lseek, which Python's append mode insists on."""
    control = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(control, text.encode())
    finally:
        os.close(control)


def kernel(hot, arguments):
    tracing = "/sys/kernel/tracing"
    if not os.path.exists(f"{tracing}/uprobe_events"):
        return math.inf
    _, offset = symbol(hot, "hot")
    group = f"probed_bench_{os.getpid()}"
    write_control(f"{tracing}/uprobe_events", f"p:{group}/hot {hot}:{hex(offset)} {arguments}\n")
    instance = f"{tracing}/instances/{group}"
    try:
        os.mkdir(instance)
        enable = f"{instance}/events/{group}/hot/enable"
        try:
            write_control(enable, "1")
            with Program(hot, KERNEL_CALLS) as program:
                return per_call(program)
        finally:
            write_control(enable, "0")
            os.rmdir(instance)
    finally:
        write_control(f"{tracing}/uprobe_events", f"-:{group}/hot\n")


def slow_tracer(hot, command):
    """Cost per call under a tracer that attaches by pid, from when its int3 is there."""
    _, offset = symbol(hot, "hot")
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
