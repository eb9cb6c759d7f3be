"""A thousand definitions made and removed: how long that takes, and how much of it is the kernel's."""

import time
import unittest

from kernel_side import ROOT, Case, define, definitions

COUNT = 1000


def functions():
    """That no program here runs: system calls of 32-bit programs."""
    names = [line.split()[0] for line in (ROOT / "available_filter_functions").read_text()
             .splitlines()]
    return [name for name in names if name.startswith("__ia32_")]


def lines(group):
    names = functions()
    letters = ("p", "r")
    return [f"{letters[i % 2]}:{group}/e{i} {names[i // 2 % len(names)]} a=%di"
            for i in range(COUNT)]


def kernel_alone():
    """Seconds to make, enable, disable and remove them."""
    begin = time.monotonic()
    for line in lines("alone"):
        assert define(line), line
    switches = [ROOT / f"events/alone/e{i}/enable" for i in range(COUNT)]
    for switch in switches:
        switch.write_text("1")
    middle = time.monotonic()
    for switch in switches:
        switch.write_text("0")
    for i in range(COUNT):
        assert define(f"-:alone/e{i}")
    return middle - begin, time.monotonic() - middle


class Thousand(Case):
    def test_time(self):
        made, removed = kernel_alone()
        path = "/tmp/thousand"
        with open(path, "w", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in lines("ours")))
        begin = time.monotonic()
        answer = self.daemon.run("define", "-f", path, "--timeout", "600", seconds=120)
        self.assertEqual(answer.code, 0, answer.err)
        middle = time.monotonic()
        self.assertEqual(len(definitions(self.pid)), COUNT)
        begin_removal = time.monotonic()
        answer = self.daemon.run("delete", "ours/", "--timeout", "600", seconds=120)
        self.assertEqual(answer.code, 0, answer.err)
        end = time.monotonic()
        self.assert_nothing_left()
        print(f"{COUNT} kprobes: made in {middle - begin:.2f} s (the kernel alone {made:.2f} s), "
              f"removed in {end - begin_removal:.2f} s (the kernel alone {removed:.2f} s)",
              flush=True)


if __name__ == "__main__":
    unittest.main()
