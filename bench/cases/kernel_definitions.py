"""A thousand definitions of the kernel's, made, switched on, and removed: by the daemon, and by
plain writes to tracefs, which is the kernel's own share. Kernel uprobes on a program that nobody
runs, because every kernel with tracefs has those."""

import os
import shutil
import subprocess
import tempfile
import time

from cases.daemon import Daemon

TRACEFS = "/sys/kernel/tracing"
COUNT = 1000


def code_offset(path):
    """Of the first executable segment."""
    out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, timeout=30,
                         check=True).stdout
    return int(next(line.split()[1] for line in out.splitlines()
                    if "LOAD" in line and " E " in line), 16)


def lines(group, program):
    start = code_offset(program)
    return [f"p:{group}/e{i} {program}:{start + i:#x} a=%di" for i in range(COUNT)]


def write(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)  # truncating would delete everybody's
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def kernel_alone(program):
    """Seconds to make and to remove."""
    group = f"probed_bench_{os.getpid()}"
    instance = f"{TRACEFS}/instances/{group}"
    os.mkdir(instance)
    try:
        begin = time.monotonic()
        for line in lines(group, program):
            write(f"{TRACEFS}/dynamic_events", line + "\n")
        switches = [f"{instance}/events/{group}/e{i}/enable" for i in range(COUNT)]
        for switch in switches:
            write(switch, "1")
        middle = time.monotonic()
        for switch in switches:
            write(switch, "0")
        for i in range(COUNT):
            write(f"{TRACEFS}/dynamic_events", f"-:{group}/e{i}\n")
        return middle - begin, time.monotonic() - middle
    finally:
        os.rmdir(instance)
        try:
            write(f"{TRACEFS}/dynamic_events", f"-:{group}/\n")
        except OSError:
            pass  # all are gone, as they should be


def daemons(build, program):
    with Daemon(build) as daemon:
        begin = time.monotonic()
        daemon.probectl("define", "--mechanism", "kernel", "--timeout", "100", "-f", "-",
                        text="".join(line + "\n" for line in lines("bench", program)))
        middle = time.monotonic()
        daemon.probectl("delete", "bench/", "--timeout", "100")
        return middle - begin, time.monotonic() - middle


def measure(build):
    with tempfile.TemporaryDirectory(prefix="probed-bench-") as folder:
        program = shutil.copy("/bin/true", f"{folder}/program")
        try:
            kernel = kernel_alone(program)
        except OSError as error:
            return [{"case": f"{COUNT} kernel definitions", "measured": "",
                     "note": f"not measured: {error}"}]
        ours = daemons(build, program)
    return [{"case": f"{COUNT} kernel definitions {what}", "measured": f"{own:.2f} s",
             "ratio": own / share, "note": f"the kernel alone {share:.2f} s"}
            for what, own, share in zip(("made", "removed"), ours, kernel)]
