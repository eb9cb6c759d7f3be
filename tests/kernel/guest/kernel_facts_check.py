"""What probectl tells of the kernel, against what the kernel does."""

import collections
import json
import os
import random
import unittest
from pathlib import Path

from support.daemon import Daemon
from support.tracefs import ROOT
from support.wait import wait_until

_KPROBES = Path("/sys/kernel/debug/kprobes")


def define(line):
    """Whether kprobe_events takes the line; never truncates."""
    fd = os.open(ROOT / "kprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, line.encode() + b"\n")
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def lines(daemon, *words):
    answer = daemon.run(*words, "--json", seconds=60)
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def inside(function):
    """An offset in it that the kernel takes for an instruction's begin."""
    for offset in range(8, 64):
        if define(f"p:facts/try {function}+{offset}"):
            define("-:facts/try")
            return offset
    raise AssertionError(f"nowhere in {function}")


class Facts(unittest.TestCase):
    def test_kernel_list_and_blacklist(self):
        self.assertTrue(define("p:facts/entry do_sys_openat2"))
        self.assertTrue(define("r:facts/exit vfs_read"))
        self.assertTrue(define(f"p:facts/inside vfs_read+{inside('vfs_read')}"))
        switches = [ROOT / "events" / "facts" / event / "enable" for event in ("entry", "inside")]
        try:
            for switch in switches:
                switch.write_text("1")
            # The kernel makes a jump of it some time later.
            wait_until(lambda: "[OPTIMIZED]" in (_KPROBES / "list").read_text(), 20, "a jump")
            with Daemon() as daemon:
                text = daemon.run("kernel", "list")
                kernels = {" ".join(line.split()) for line in
                           (_KPROBES / "list").read_text().splitlines()}
                self.assertEqual({" ".join(line.split()) for line in text.out.splitlines()}, kernels)
                self.assertEqual(len(kernels), 3)
                for flag in ("DISABLED", "FTRACE", "OPTIMIZED"):  # GONE: modules_check
                    self.assertIn(f"[{flag}]", text.out)
                    self.assertEqual(
                        {probe["place"] for probe in lines(daemon, "kernel", "list")
                         if probe[flag.lower()]},
                        {line.split()[2] for line in kernels if f"[{flag}]" in line})
                self.assertIn("kprobes are on, jumps are on", text.err)
                ranges = lines(daemon, "kernel", "blacklist")
                self.assertEqual(len(ranges),
                                 len((_KPROBES / "blacklist").read_text().splitlines()))
        finally:
            for switch in switches:
                switch.write_text("0")
            for event in ("entry", "exit", "inside"):
                define(f"-:facts/{event}")

    def test_obstacles_are_the_kernels(self):
        """Of functions drawn at random, and of those on the blacklist, it refuses what we say that
        it refuses, and no other."""
        with Daemon() as daemon:
            symbols = lines(daemon, "symbols", "--kernel", "--limit", "1000000")
        names = {}
        for symbol in symbols:
            names[symbol["name"]] = names.get(symbol["name"], 0) + 1
        rng = random.Random(6)
        single = [s for s in symbols if names[s["name"]] == 1 and s["module"] == "vmlinux"
                  and s["name"].isidentifier()]
        hindered = [s for s in single if s.get("obstacle")]
        drawn = rng.sample(single, 150) + rng.sample(hindered, 150)
        wrong = []
        for number, symbol in enumerate(drawn):
            taken = define(f"p:facts/f{number} {symbol['name']}")
            if taken:
                define(f"-:facts/f{number}")
            if taken == bool(symbol.get("obstacle")):
                wrong.append((symbol["name"], symbol.get("obstacle"), taken))
        self.assertEqual(wrong, [])

    def test_explain(self):
        with Daemon() as daemon:
            def explain(place):
                return daemon.run("explain", "--kernel", place, seconds=60)
            forbidden = (_KPROBES / "blacklist").read_text().split("\t")[1].split("\n")[0]
            self.assertIn("blacklist", explain(forbidden).out)
            self.assertIn("mechanism    kernel", explain("do_sys_openat2").out)
            self.assertIn("outside the function", explain("do_sys_openat2+0x100000").out)
            self.assertIn("KERNEL_SYMBOL_NOT_FOUND", explain("do_sys_openat3x").err)
            # A static inline of the kernel's, which is nowhere as a function.
            self.assertIn("inlined wherever it is called", explain("file_inode").err)

    def test_explains_what_the_kernel_refuses(self):
        """notrace, and a name that several functions have (where the kernel minds)."""
        with Daemon() as daemon:
            symbols = [s for s in lines(daemon, "symbols", "--kernel", "--limit", "1000000")
                       if s["module"] == "vmlinux" and s["name"].isidentifier()]
            times = collections.Counter(s["name"] for s in symbols)
            hidden = next(s["name"] for s in symbols if times[s["name"]] == 1
                          and "notrace" in s.get("obstacle", ""))
            self.assertIn("notrace", daemon.run("explain", "--kernel", hidden, seconds=60).out)
            self.assertFalse(define(f"p:facts/hidden {hidden}"))
            twice = next(s["name"] for s in symbols if times[s["name"]] > 1
                         and not s.get("obstacle"))
            words = daemon.run("explain", "--kernel", twice, seconds=60)
            self.assertIn(f"ambiguous: {times[twice]} functions", words.out + words.err)
            self.assertFalse(define(f"p:facts/twice {twice}"))
            self.assertIn("not unique", (ROOT / "error_log").read_text())
